package quorate;

import java.util.List;
import java.util.TreeMap;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Makes the changes of one class. No instruction of ours branches, so the frames of the class remain right. */
final class Rewriter extends ClassVisitor {
    private final List<Change> changes;
    private final TreeMap<Integer, Integer> made = new TreeMap<>();

    private Rewriter(ClassVisitor next, List<Change> changes) {
        super(Opcodes.ASM9, next);
        this.changes = changes;
    }

    /** The class with the changes; throws {@code Refusal} unless each of them has exactly one place. */
    static byte[] rewrite(byte[] original, List<Change> changes) {
        ClassReader reader = new ClassReader(original);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        Rewriter rewriter = new Rewriter(writer, changes);
        reader.accept(rewriter, 0);
        for (int number = 0; number < changes.size(); number++) {
            if (rewriter.made.getOrDefault(number, 0) != 1) {
                throw new Refusal(changes.get(number) + " has no call of " + changes.get(number).call()
                        + " where one is expected");
            }
        }
        return writer.toByteArray();
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
        MethodVisitor next = super.visitMethod(access, name, descriptor, signature, thrown);
        return new Calls(next, name + descriptor);
    }

    private final class Calls extends MethodVisitor {
        private final String in;
        private final int[] seen = new int[changes.size()];

        Calls(MethodVisitor next, String in) {
            super(Opcodes.ASM9, next);
            this.in = in;
        }

        @Override
        public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean ofInterface) {
            boolean replaced = false;
            List<Integer> here = here(owner, name, descriptor);
            for (int number : here) {
                if (changes.get(number).place() != Change.Place.AFTER) {
                    insert(changes.get(number));
                    replaced |= changes.get(number).place() == Change.Place.INSTEAD;
                }
            }
            if (!replaced) {
                super.visitMethodInsn(opcode, owner, name, descriptor, ofInterface);
            }
            for (int number : here) {
                if (changes.get(number).place() == Change.Place.AFTER) {
                    insert(changes.get(number));
                }
            }
        }

        private List<Integer> here(String owner, String name, String descriptor) {
            List<Integer> here = new java.util.ArrayList<>();
            for (int number = 0; number < changes.size(); number++) {
                Change change = changes.get(number);
                if (change.in().equals(in) && change.counts(owner, name, descriptor)
                        && ++seen[number] == change.occurrence()) {
                    made.merge(number, 1, Integer::sum);
                    here.add(number);
                }
            }
            return here;
        }

        private void insert(Change change) {
            int start = change.method().indexOf('(');
            String descriptor = change.method().substring(start);
            Type[] parameters = Type.getArgumentTypes(descriptor);
            int onStack = parameters.length - change.locals().length;
            for (int place = 0; place < change.locals().length; place++) {
                super.visitVarInsn(parameters[onStack + place].getOpcode(Opcodes.ILOAD), change.locals()[place]);
            }
            super.visitMethodInsn(Opcodes.INVOKESTATIC, change.correction(), change.method().substring(0, start),
                    descriptor, false);
        }
    }
}
