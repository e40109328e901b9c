// Connects, takes the lock as soon as it has read a line, and keeps it until it is killed.
import java.util.concurrent.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.locks.*;
import org.apache.curator.retry.ExponentialBackoffRetry;

public class Orphan {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(args[0]).sessionTimeoutMs(30000)
            .connectionTimeoutMs(30000).retryPolicy(new ExponentialBackoffRetry(100, 10)).build();
        client.start();
        client.blockUntilConnected();
        System.out.println(client.getZookeeperClient().getZooKeeper().getSessionId());
        System.in.read();
        System.out.println(new InterProcessMutex(client, args[1]).acquire(20, TimeUnit.SECONDS));
        Thread.sleep(Long.MAX_VALUE);
    }
}
