package io.github.tributary.app;

import android.net.LocalSocket;
import android.net.Network;
import android.system.ErrnoException;
import android.system.OsConstants;
import io.github.tributary.core.HostSession;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;

/** What the daemon cannot do itself: bind sockets to networks and look names up over them. Safe for concurrent use. */
final class NetworkHost implements HostSession.Resolver {
    @Override
    public List<String> resolve(long handle, String name) {
        List<String> addrs = new ArrayList<String>();
        try {
            for (InetAddress a : Network.fromNetworkHandle(handle).getAllByName(name)) {
                addrs.add(LinkWatcher.text(a));
            }
        } catch (UnknownHostException e) {
            return null;
        }
        return addrs;
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
    private static int bind(long handle, FileDescriptor fd) {
        try {
            Network.fromNetworkHandle(handle).bindSocket(fd);
            return 0;
        } catch (IOException e) {
            Throwable cause = e.getCause();
            return cause instanceof ErrnoException ? ((ErrnoException) cause).errno : OsConstants.EIO;
        } catch (IllegalArgumentException e) { // no handle
            return OsConstants.ENODEV;
        }
    }
}
