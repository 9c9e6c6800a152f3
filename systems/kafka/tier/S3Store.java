package wrackline;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.checksums.RequestChecksumCalculation;
import software.amazon.awssdk.core.checksums.ResponseChecksumValidation;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.model.S3Object;

/** Objects are those of a bucket on a server that speaks S3, below a prefix. */
final class S3Store implements Store {
    private static final int NOT_FOUND = 404;
    private static final int RANGE_NOT_SATISFIABLE = 416;

    private S3Client client;
    private String bucket;
    private String prefix;

    /** The file of credentials has the key's id and the secret, one a line. */
    @Override
    public void configure(Map<String, ?> configs) throws IOException {
        bucket = String.valueOf(configs.get("s3.bucket"));
        prefix = configs.get("s3.prefix") + "/";
        List<String> keys = Files.readAllLines(Path.of(String.valueOf(configs.get("s3.credentials"))));
        client = S3Client.builder()
                .endpointOverride(URI.create(String.valueOf(configs.get("s3.endpoint"))))
                .region(Region.of(String.valueOf(configs.get("s3.region"))))
                .credentialsProvider(
                        StaticCredentialsProvider.create(AwsBasicCredentials.create(keys.get(0), keys.get(1))))
                .forcePathStyle(true)
                // Servers other than Amazon's may not know the newer checksums.
                .requestChecksumCalculation(RequestChecksumCalculation.WHEN_REQUIRED)
                .responseChecksumValidation(ResponseChecksumValidation.WHEN_REQUIRED)
                .httpClient(UrlConnectionHttpClient.create())
                .build();
    }

    @Override
    public void put(String name, byte[] bytes) throws IOException {
        of(name, () -> client.putObject(
                request -> request.bucket(bucket).key(prefix + name), RequestBody.fromBytes(bytes)));
    }

    @Override
    public InputStream get(String name, long first, long last) throws IOException {
        String range = "bytes=" + first + "-" + (last == Long.MAX_VALUE ? "" : last);
        try {
            return of(name, () -> client.getObject(
                    request -> request.bucket(bucket).key(prefix + name).range(range)));
        } catch (RangeBehindEnd refused) {
            // S3 has no range for nothing: an index of a small segment is empty.
            if (of(name, () -> client.headObject(request -> request.bucket(bucket).key(prefix + name)))
                            .contentLength()
                    == first) {
                return InputStream.nullInputStream();
            }
            throw refused;
        }
    }

    @Override
    public long ageMs(String name) throws IOException {
        return System.currentTimeMillis()
                - of(name, () -> client.headObject(request -> request.bucket(bucket).key(prefix + name)))
                        .lastModified()
                        .toEpochMilli();
    }

    @Override
    public boolean delete(String begins) throws IOException {
        List<S3Object> objects = of(begins, () -> client.listObjectsV2(
                request -> request.bucket(bucket).prefix(prefix + begins))).contents();
        for (S3Object object : objects) {
            of(begins, () -> client.deleteObject(request -> request.bucket(bucket).key(object.key())));
        }
        return !objects.isEmpty();
    }

    private static final class RangeBehindEnd extends IOException {
        private static final long serialVersionUID = 1L;

        RangeBehindEnd(String name) {
            super("the range begins behind the end of " + name);
        }
    }

    private static <T> T of(String name, Callable<T> question) throws IOException {
        try {
            return question.call();
        } catch (S3Exception error) {
            if (error.statusCode() == NOT_FOUND) {
                throw new NoSuchFileException(name);
            }
            if (error.statusCode() == RANGE_NOT_SATISFIABLE) {
                throw new RangeBehindEnd(name);
            }
            throw new IOException(name + ": " + error, error);
        } catch (SdkException error) {
            throw new IOException(name + ": " + error, error);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
