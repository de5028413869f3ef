package io.github.tributary.app;

import android.annotation.TargetApi;
import android.net.ConnectivityManager;
import android.net.DnsResolver;
import android.net.LocalSocket;
import android.net.Network;
import android.os.Build;
import android.os.Process;
import android.system.ErrnoException;
import android.system.OsConstants;
import io.github.tributary.core.HostSession;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Does what the daemon cannot do itself: binds sockets to networks and looks up names over them. Safe for concurrent
 * use.
 */
final class NetworkHost implements HostSession.Resolver {
    private static final int NAME_ERROR = 3; // RFC 1035 section 4.1.1
    private static final int NO_ERROR = 0;
    private static final long PATIENCE_SECONDS = 3;

    private final Map<Long, Network> networks = new ConcurrentHashMap<Long, Network>(); // Android 8 finds none by handle

    private volatile ConnectivityManager manager; // null = not started

    /** Starts answering which app owns a connection. */
    void begin(ConnectivityManager m) {
        manager = m;
    }

    @Override
    public int owner(String local, String remote) throws UnknownHostException {
        ConnectivityManager m = manager;
        if (Build.VERSION.SDK_INT < 29 || m == null) {
            return HostSession.NOBODY;
        }
        try {
            int uid = m.getConnectionOwnerUid(OsConstants.IPPROTO_TCP, address(local), address(remote));
            return uid == Process.INVALID_UID ? HostSession.NOBODY : uid;
        } catch (SecurityException e) { // this app's VPN is off
            return HostSession.NOBODY;
        }
    }

    /** Parses "address:port". The address is numeric, so no lookup takes place. */
    static InetSocketAddress address(String s) throws UnknownHostException {
        int colon = s.lastIndexOf(':');
        return new InetSocketAddress(InetAddress.getByName(s.substring(0, colon)), Integer.parseInt(s.substring(colon + 1)));
    }

    void add(Network n) {
        networks.put(n.getNetworkHandle(), n);
    }

    void remove(Network n) {
        networks.remove(n.getNetworkHandle());
    }

    @Override
    public List<String> resolve(long handle, String name) throws IOException, InterruptedException {
        Network n = networks.get(handle);
        if (n == null) {
            throw new IOException("the network is gone");
        }
        List<String> addrs = new ArrayList<String>();
        try {
            for (InetAddress a : n.getAllByName(name)) {
                addrs.add(LinkWatcher.text(a));
            }
        } catch (UnknownHostException e) { // whatever its cause
            if (Build.VERSION.SDK_INT >= 29 && !missing(n, name)) {
                throw e;
            }
            return null;
        }
        return addrs;
    }

    /**
     * Returns whether the servers report that there is no such name. A server that does not answer says nothing about
     * the name.
     */
    @TargetApi(29)
    private static boolean missing(Network n, String name) throws InterruptedException {
        final CountDownLatch told = new CountDownLatch(1);
        final AtomicBoolean missing = new AtomicBoolean();
        Executor here =
                new Executor() {
                    @Override
                    public void execute(Runnable r) {
                        r.run();
                    }
                };
        DnsResolver.Callback<List<InetAddress>> answer =
                new DnsResolver.Callback<List<InetAddress>>() {
                    @Override
                    public void onAnswer(List<InetAddress> addrs, int code) {
                        missing.set(code == NAME_ERROR || code == NO_ERROR && addrs.isEmpty());
                        told.countDown();
                    }

                    @Override
                    public void onError(DnsResolver.DnsException e) {
                        told.countDown();
                    }
                };
        DnsResolver.getInstance().query(n, name, DnsResolver.FLAG_EMPTY, here, null, answer);
        return told.await(PATIENCE_SECONDS, TimeUnit.SECONDS) && missing.get();
    }

    /** Serves the connection for sockets until it ends. */
    void binds(LocalSocket s, InputStream stream) throws IOException {
        DataInputStream in = new DataInputStream(stream);
        DataOutputStream out = new DataOutputStream(s.getOutputStream());
        while (true) {
            long handle = in.readLong();
            FileDescriptor[] fds = s.getAncillaryFileDescriptors();
            if (fds == null || fds.length != 1) {
                throw new IOException("a message without a socket");
            }
            try {
                out.writeInt(bind(handle, fds[0]));
            } finally {
                HostServer.close(fds[0]);
            }
        }
    }

    /** Returns 0 or an errno. */
    private int bind(long handle, FileDescriptor fd) {
        Network n = networks.get(handle);
        if (n == null) {
            return OsConstants.ENODEV;
        }
        try {
            n.bindSocket(fd);
            return 0;
        } catch (IOException e) {
            Throwable cause = e.getCause();
            return cause instanceof ErrnoException ? ((ErrnoException) cause).errno : OsConstants.EIO;
        }
    }
}
