package wrackline;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;

/** Objects are files of a folder that all brokers see. */
final class FolderStore implements Store {
    private Path folder;

    @Override
    public void configure(Map<String, ?> configs) {
        folder = Path.of(String.valueOf(configs.get("dir")));
    }

    /** A broker that is killed leaves no half of a file under its name. */
    @Override
    public void put(String name, byte[] bytes) throws IOException {
        Path file = folder.resolve(name);
        Files.createDirectories(file.getParent());
        Path half = file.resolveSibling(file.getFileName() + ".half");
        Files.write(half, bytes);
        Files.move(half, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    @Override
    public InputStream get(String name, long first, long last) throws IOException {
        byte[] all = Files.readAllBytes(folder.resolve(name));
        if (first > all.length) {
            throw new IOException("position " + first + " is behind the end of " + name);
        }
        int end = (int) Math.min(all.length - 1, last) + 1;
        return new ByteArrayInputStream(all, (int) first, Math.max(0, end - (int) first));
    }

    @Override
    public long ageMs(String name) throws IOException {
        return System.currentTimeMillis() - Files.getLastModifiedTime(folder.resolve(name)).toMillis();
    }

    @Override
    public boolean delete(String prefix) throws IOException {
        Path base = folder.resolve(prefix);
        boolean any = false;
        try (DirectoryStream<Path> files = Files.newDirectoryStream(base.getParent(), base.getFileName() + "*")) {
            for (Path file : files) {
                any |= Files.deleteIfExists(file);
            }
        } catch (NoSuchFileException gone) {
            return false;
        }
        return any;
    }
}
