package quorate;

/**
 * One change of a method: where it calls {@code call}, for the {@code occurrence}-th time, our own {@code method} runs
 * before that call, after it with its result, or in place of it.
 *
 * <p>The parameters of our method are first those that the place has on the stack (none, the result, or the receiver
 * and the arguments), then the local variables {@code locals}. Classes have names with slashes; {@code in} and
 * {@code call} are a name and a descriptor.
 */
record Change(
        String owner, String in, Place place, int occurrence, String call, String correction, String method,
        int... locals) {

    enum Place { BEFORE, AFTER, INSTEAD }

    /** Whether a call is one that this change counts. */
    boolean counts(String owner, String name, String descriptor) {
        return call.equals(owner.substring(owner.lastIndexOf('/') + 1) + "." + name + descriptor);
    }

    @Override
    public String toString() {
        return owner.substring(owner.lastIndexOf('/') + 1) + "." + in.substring(0, in.indexOf('('));
    }
}
