package org.apache.zookeeper.server.persistence;

import java.io.IOException;
import java.io.RandomAccessFile;

/**
 * C: a log is cut before its first record beyond the zxid.
 *
 * <p>The iterator has read the first record that is not before the zxid. If that is a later one, its end is the wrong
 * place. A record is a checksum (8 bytes), a length (4), a header that begins with a session (8), a cxid (4) and the
 * zxid (8), and at the end a byte.
 */
final class TruncAfterSnap {
    private static final int FILE_HEADER = 16;
    private static final int AROUND = 8 + 4 + 1;
    private static final int BEFORE_ZXID = 8 + 4 + 8 + 4;

    private TruncAfterSnap() { }

    static long position(FileTxnLog.PositionInputStream input, FileTxnLog.FileTxnIterator log, long zxid)
            throws IOException {
        if (log.getHeader() == null || log.getHeader().getZxid() <= zxid) {
            return input.getPosition();
        }
        try (RandomAccessFile file = new RandomAccessFile(log.logFile, "r")) {
            long start = FILE_HEADER;
            while (true) {
                file.seek(start + BEFORE_ZXID);
                if (file.readLong() > zxid) {
                    return start;
                }
                file.seek(start + 8);
                start += AROUND + file.readInt();
            }
        }
    }
}
