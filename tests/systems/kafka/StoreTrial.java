package wrackline;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.util.HashMap;
import java.util.Map;

/** What every store of a remote tier must do: {@code StoreTrial CLASS KEY=VALUE ...}. */
public final class StoreTrial {
    private static final long REST = Long.MAX_VALUE;

    public static void main(String[] arguments) throws Exception {
        Map<String, String> configs = new HashMap<>();
        for (int at = 1; at < arguments.length; at++) {
            String[] pair = arguments[at].split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        Store store = (Store) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        store.configure(configs);
        check(!store.delete("segments/a-0/1."), "nothing can be deleted");
        check(isMissing(store, "segments/a-0/1.LOG"), "nothing is there");
        store.put("segments/a-0/1.LOG", "0123456789".getBytes(StandardCharsets.UTF_8));
        store.put("segments/a-0/1.OFFSET", new byte[0]);
        store.put("segments/a-0/10.LOG", "other".getBytes(StandardCharsets.UTF_8));
        check(read(store, "segments/a-0/1.LOG", 0, REST).equals("0123456789"), "the whole");
        check(read(store, "segments/a-0/1.LOG", 3, 5).equals("345"), "a part");
        check(read(store, "segments/a-0/1.LOG", 7, 100).equals("789"), "a part that goes on behind the end");
        check(read(store, "segments/a-0/1.LOG", 10, REST).equals(""), "nothing at the end");
        check(read(store, "segments/a-0/1.OFFSET", 0, REST).equals(""), "nothing of what is empty");
        check(isRefused(store, "segments/a-0/1.LOG", 11), "nothing is behind the end");
        store.put("segments/a-0/1.LOG", "again".getBytes(StandardCharsets.UTF_8));
        check(read(store, "segments/a-0/1.LOG", 0, REST).equals("again"), "what was put later");
        check(store.ageMs("segments/a-0/1.LOG") < 60_000, "its age");
        check(store.delete("segments/a-0/1."), "two are deleted");
        check(isMissing(store, "segments/a-0/1.LOG"), "it is gone");
        check(read(store, "segments/a-0/10.LOG", 0, REST).equals("other"), "another stays");
        System.out.println("kept");
    }

    private static boolean isMissing(Store store, String name) throws Exception {
        try {
            read(store, name, 0, REST);
            return false;
        } catch (NoSuchFileException gone) {
            try {
                store.ageMs(name);
                return false;
            } catch (NoSuchFileException too) {
                return true;
            }
        }
    }

    private static boolean isRefused(Store store, String name, long first) throws Exception {
        try {
            read(store, name, first, REST);
            return false;
        } catch (NoSuchFileException gone) {
            throw gone;
        } catch (IOException refused) {
            return true;
        }
    }

    private static String read(Store store, String name, long first, long last) throws Exception {
        try (InputStream stream = store.get(name, first, last)) {
            return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private static void check(boolean kept, String what) {
        if (!kept) {
            throw new AssertionError(what);
        }
    }
}
