package quorate;

/** A correction cannot be made; the message has the reason. */
final class Refusal extends RuntimeException {
    Refusal(String reason) {
        super(reason);
    }
}
