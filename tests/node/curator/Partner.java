// Executes each line of its input and prints the outcome; only `exit` of takeLeadership is awaited later.
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.leader.*;
import org.apache.curator.framework.recipes.locks.*;
import org.apache.curator.retry.ExponentialBackoffRetry;

public class Partner {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(args[0]).sessionTimeoutMs(30000)
            .connectionTimeoutMs(10000).retryPolicy(new ExponentialBackoffRetry(100, 10)).build();
        client.start();
        InterProcessMutex mutex = new InterProcessMutex(client, "/lock");
        LeaderLatch latch = new LeaderLatch(client, "/latch", "curator");
        CountDownLatch end = new CountDownLatch(1), leads = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(client, "/selector", new LeaderSelectorListenerAdapter() {
            public void takeLeadership(CuratorFramework at) throws Exception { leads.countDown(); end.await(); }
        });
        selector.setId("curator");
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            Object said = "done";
            switch (words[0]) {
                case "acquire": said = mutex.acquire(Long.parseLong(words[1]), TimeUnit.MILLISECONDS); break;
                case "release": mutex.release(); break;
                case "start": latch.start(); break;
                case "await": said = latch.await(Long.parseLong(words[1]), TimeUnit.MILLISECONDS); break;
                case "leader": client.sync().forPath("/latch"); said = latch.getLeader().getId(); break;
                case "participants": said = latch.getParticipants().stream().map(Participant::getId)
                    .collect(Collectors.joining(",")); break;
                case "close": latch.close(); break;
                case "select": selector.start(); break;
                case "leads": said = leads.await(Long.parseLong(words[1]), TimeUnit.MILLISECONDS); break;
                case "return": end.countDown(); break;
            }
            System.out.println(said);
        }
        client.close();
    }
}
