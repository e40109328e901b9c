package quorate;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Corrects classes of a server when it starts: {@code -javaagent:agent.jar=NAME,NAME}.
 *
 * <p>Either every named correction is made, or the process ends with the reason and exit code 13 before the server
 * begins. So a class is changed only if its bytes are those of a release that was tried. {@code main} makes the
 * corrections without a server, and verifies the classes.
 */
public final class Agent implements ClassFileTransformer {
    private static final int REFUSED = 13;
    private static Set<String> classes = Set.of();
    private final Map<String, byte[]> originals = new TreeMap<>();
    private final Map<String, byte[]> corrected = new TreeMap<>();
    private final TreeSet<String> loaded = new TreeSet<>();

    public static void premain(String names, Instrumentation jvm) {
        try {
            Agent agent = new Agent(names == null ? "" : names);
            jvm.addTransformer(agent);
            classes = agent.corrected.keySet();
            for (String name : classes) {
                Class.forName(name.replace('/', '.'), false, ClassLoader.getSystemClassLoader());
                if (!agent.loaded.contains(name)) {
                    throw new Refusal(name + " was loaded before it could be corrected");
                }
            }
            System.out.println("quorate: corrected " + names);
        } catch (Refusal | IOException | ReflectiveOperationException | LinkageError problem) {
            refuse(problem);
        }
    }

    public static void main(String[] none) {
        try {
            for (String name : classes) {
                Class.forName(name.replace('/', '.')); // which verifies it
            }
        } catch (ClassNotFoundException | LinkageError problem) {
            refuse(problem);
        }
    }

    private static void refuse(Throwable problem) {
        System.err.println("quorate: not corrected: " + problem.getMessage());
        System.err.flush();
        Runtime.getRuntime().halt(REFUSED);
    }

    private Agent(String names) throws IOException {
        Map<String, List<Change>> changes = new TreeMap<>();
        for (String name : names.split(",")) {
            List<Change> correction = Corrections.ALL.get(name);
            if (correction == null) {
                throw new Refusal("no correction is called '" + name + "'; known are "
                        + String.join(", ", new TreeSet<>(Corrections.ALL.keySet())));
            }
            for (Change change : correction) {
                changes.computeIfAbsent(change.owner(), owner -> new ArrayList<>()).add(change);
            }
        }
        for (Map.Entry<String, List<Change>> entry : changes.entrySet()) {
            String name = entry.getKey();
            byte[] original = tried(name);
            originals.put(name, original);
            corrected.put(name, Rewriter.rewrite(original, entry.getValue()));
        }
    }

    private static byte[] tried(String name) throws IOException {
        try (InputStream file = ClassLoader.getSystemResourceAsStream(name + ".class")) {
            if (file == null) {
                throw new Refusal("there is no class " + name + " on the class path");
            }
            byte[] original = file.readAllBytes();
            String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(original));
            if (!Corrections.TRIED.get(name).contains(digest)) {
                throw new Refusal(name + " is not the class of a release that the correction was tried with (SHA-256 "
                        + digest + ")");
            }
            return original;
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        byte[] original = name == null ? null : originals.get(name);
        if (original == null) {
            return null;
        }
        if (!Arrays.equals(original, bytes)) {
            // An exception of a transformer is ignored, and the server would run without the correction.
            refuse(new Refusal(name + " was loaded with other bytes than those of its file"));
        }
        loaded.add(name);
        return corrected.get(name);
    }
}
