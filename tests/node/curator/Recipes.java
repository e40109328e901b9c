import java.util.*;
import java.util.concurrent.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.api.transaction.*;
import org.apache.curator.framework.recipes.atomic.*;
import org.apache.curator.framework.recipes.barriers.*;
import org.apache.curator.framework.recipes.cache.*;
import org.apache.curator.framework.recipes.leader.*;
import org.apache.curator.framework.recipes.locks.*;
import org.apache.curator.framework.recipes.nodes.*;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.*;
import org.apache.zookeeper.data.Stat;

public class Recipes {
    static final long WAIT = 20;

    static CuratorFramework client(String servers) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(servers).sessionTimeoutMs(30000)
            .connectionTimeoutMs(10000).retryPolicy(new ExponentialBackoffRetry(100, 10)).namespace("curator").build();
        client.start();
        if (!client.blockUntilConnected(30, TimeUnit.SECONDS)) throw new IllegalStateException("not connected");
        return client;
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new IllegalStateException(what);
    }

    static void mutex(CuratorFramework one, CuratorFramework other) throws Exception {
        InterProcessMutex first = new InterProcessMutex(one, "/mutex");
        InterProcessMutex second = new InterProcessMutex(other, "/mutex");
        check(first.acquire(WAIT, TimeUnit.SECONDS), "free");
        check(first.acquire(WAIT, TimeUnit.SECONDS), "reentrant");
        check(!second.acquire(200, TimeUnit.MILLISECONDS), "excluded");
        first.release();
        first.release();
        check(second.acquire(WAIT, TimeUnit.SECONDS), "passed on");
        second.release();
    }

    static void readWrite(CuratorFramework one, CuratorFramework other) throws Exception {
        InterProcessReadWriteLock first = new InterProcessReadWriteLock(one, "/rw");
        InterProcessReadWriteLock second = new InterProcessReadWriteLock(other, "/rw");
        check(first.readLock().acquire(WAIT, TimeUnit.SECONDS), "reader");
        check(second.readLock().acquire(WAIT, TimeUnit.SECONDS), "another reader");
        check(!second.writeLock().acquire(200, TimeUnit.MILLISECONDS), "no writer");
        first.readLock().release();
        second.readLock().release();
        check(second.writeLock().acquire(WAIT, TimeUnit.SECONDS), "writer");
        second.writeLock().release();
    }

    static void latch(CuratorFramework one, CuratorFramework other) throws Exception {
        LeaderLatch first = new LeaderLatch(one, "/latch", "first");
        LeaderLatch second = new LeaderLatch(other, "/latch", "second");
        first.start();
        check(first.await(WAIT, TimeUnit.SECONDS), "first leads");
        second.start();
        check(!second.hasLeadership(), "second does not");
        first.close();
        check(second.await(WAIT, TimeUnit.SECONDS), "second leads after it");
        second.close();
    }

    static void selector(CuratorFramework one, CuratorFramework other) throws Exception {
        BlockingQueue<String> led = new LinkedBlockingQueue<>();
        List<LeaderSelector> selectors = new ArrayList<>();
        for (CuratorFramework at : List.of(one, other)) {
            String name = at == one ? "one" : "other";
            LeaderSelector selector = new LeaderSelector(at, "/selector", new LeaderSelectorListenerAdapter() {
                public void takeLeadership(CuratorFramework client) { led.add(name); }
            });
            selectors.add(selector);
            selector.start();
        }
        Set<String> leaders = new TreeSet<>();
        for (int i = 0; i < 2; i++) leaders.add(String.valueOf(led.poll(WAIT, TimeUnit.SECONDS)));
        check(leaders.equals(Set.of("one", "other")), leaders.toString());
        for (LeaderSelector selector : selectors) selector.close();
    }

    static void cache(CuratorFramework one, CuratorFramework other) throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        one.create().forPath("/cached", "root".getBytes());
        CuratorCache cache = CuratorCache.build(one, "/cached");
        cache.listenable().addListener(CuratorCacheListener.builder()
            .forCreates(node -> seen.add("created " + node.getPath()))
            .forChanges((before, after) -> seen.add("changed to " + new String(after.getData())))
            .forDeletes(node -> seen.add("deleted " + node.getPath()))
            .forInitialized(() -> seen.add("initialised")).build());
        cache.start();
        List<String> expected = List.of("created /cached", "initialised", "created /cached/a", "created /cached/a/b",
            "changed to new", "deleted /cached/a/b");
        for (int i = 0; i < expected.size(); i++) {
            if (i == 2) other.create().forPath("/cached/a");
            if (i == 3) other.create().withMode(CreateMode.EPHEMERAL).forPath("/cached/a/b", "old".getBytes());
            if (i == 4) other.setData().forPath("/cached/a/b", "new".getBytes());
            if (i == 5) other.delete().forPath("/cached/a/b");
            String event = seen.poll(WAIT, TimeUnit.SECONDS);
            check(expected.get(i).equals(event), "expected " + expected.get(i) + ", saw " + event);
        }
        cache.close();
    }

    @SuppressWarnings("deprecation")
    static void nodeCache(CuratorFramework one, CuratorFramework other) throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        NodeCache cache = new NodeCache(one, "/node");
        cache.getListenable().addListener(() -> seen.add(
            cache.getCurrentData() == null ? "none" : new String(cache.getCurrentData().getData())));
        cache.start(true);
        other.create().forPath("/node", "one".getBytes());
        check("one".equals(seen.poll(WAIT, TimeUnit.SECONDS)), "created");
        other.setData().forPath("/node", "two".getBytes());
        check("two".equals(seen.poll(WAIT, TimeUnit.SECONDS)), "changed");
        other.delete().forPath("/node");
        check("none".equals(seen.poll(WAIT, TimeUnit.SECONDS)), "deleted");
        cache.close();
    }

    static void transactions(CuratorFramework one) throws Exception {
        List<CuratorTransactionResult> results = one.transaction().forOperations(
            one.transactionOp().create().forPath("/txn", "x".getBytes()),
            one.transactionOp().setData().withVersion(0).forPath("/txn", "y".getBytes()),
            one.transactionOp().check().withVersion(1).forPath("/txn"),
            one.transactionOp().create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/txn/s-"));
        check(results.get(3).getResultPath().equals("/txn/s-0000000000"), results.get(3).getResultPath());
        try {
            one.transaction().forOperations(one.transactionOp().create().forPath("/never"),
                one.transactionOp().delete().withVersion(9).forPath("/txn/s-0000000000"));
            check(false, "a transaction with a wrong version went through");
        } catch (KeeperException.BadVersionException expected) {
            check(expected.getResults().size() == 2, "results");
        }
        check(one.checkExists().forPath("/never") == null, "all or nothing");
    }

    static void counting(CuratorFramework one, CuratorFramework other) throws Exception {
        DistributedAtomicLong first = new DistributedAtomicLong(one, "/count", new ExponentialBackoffRetry(10, 20));
        DistributedAtomicLong second = new DistributedAtomicLong(other, "/count", new ExponentialBackoffRetry(10, 20));
        for (int i = 0; i < 5; i++) {
            check(first.increment().succeeded(), "first");
            other.sync().forPath("/");
            check(second.increment().succeeded(), "second");
        }
        one.sync().forPath("/");
        check(first.get().postValue() == 10L, "ten");
    }

    static void barrier(CuratorFramework one, CuratorFramework other) throws Exception {
        DistributedBarrier barrier = new DistributedBarrier(one, "/barrier");
        barrier.setBarrier();
        other.sync().forPath("/");
        check(!new DistributedBarrier(other, "/barrier").waitOnBarrier(200, TimeUnit.MILLISECONDS), "closed");
        barrier.removeBarrier();
        check(new DistributedBarrier(other, "/barrier").waitOnBarrier(WAIT, TimeUnit.SECONDS), "open");
    }

    static void persistentNode(CuratorFramework one, CuratorFramework other) throws Exception {
        CountDownLatch gone = new CountDownLatch(1);
        PersistentNode node = new PersistentNode(one, CreateMode.EPHEMERAL, false, "/persistent", "x".getBytes());
        node.start();
        check(node.waitForInitialCreate(WAIT, TimeUnit.SECONDS), "created");
        other.sync().forPath("/");
        Stat stat = other.checkExists().usingWatcher((CuratorWatcher) event -> gone.countDown()).forPath("/persistent");
        check(stat.getEphemeralOwner() == one.getZookeeperClient().getZooKeeper().getSessionId(), "owner");
        node.close();
        check(gone.await(WAIT, TimeUnit.SECONDS), "gone");
    }

    static void modes(CuratorFramework one) throws Exception {
        Stat stat = new Stat();
        one.create().storingStatIn(stat).creatingParentContainersIfNeeded()
            .withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/modes/deep/e-");
        check(stat.getVersion() == 0 && stat.getEphemeralOwner() != 0, "ephemeral");
        one.create().withTtl(1000000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/modes/ttl");
        String protectedPath = one.create().withProtection().withMode(CreateMode.EPHEMERAL).forPath("/modes/p");
        check(protectedPath.startsWith("/modes/_c_"), protectedPath);
        check(one.getChildren().forPath("/modes").size() == 3, "children");
        one.delete().deletingChildrenIfNeeded().forPath("/modes");
        check(one.checkExists().forPath("/modes") == null, "deleted");
    }

    public static void main(String[] args) throws Exception {
        try (CuratorFramework one = client(args[0]); CuratorFramework other = client(args[1])) {
            one.createContainers("/");
            other.sync().forPath("/");
            mutex(one, other);          System.out.println("mutex");
            readWrite(one, other);      System.out.println("read-write lock");
            latch(one, other);          System.out.println("leader latch");
            selector(one, other);       System.out.println("leader selector");
            cache(one, other);          System.out.println("cache");
            nodeCache(one, other);      System.out.println("node cache");
            transactions(one);          System.out.println("transactions");
            counting(one, other);       System.out.println("atomic long");
            barrier(one, other);        System.out.println("barrier");
            persistentNode(one, other); System.out.println("persistent node");
            modes(one);                 System.out.println("modes");
        }
    }
}
