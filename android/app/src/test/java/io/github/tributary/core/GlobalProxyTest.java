package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import org.junit.Test;

/** The system's proxy is ours while we run, and afterwards what it was before. */
public class GlobalProxyTest {
    private static final String OURS = "127.0.0.1:8080";

    private final FakeSystem system = new FakeSystem();

    /** Returns the proxy as a newly started process sees it. */
    private GlobalProxy proxy() {
        return new GlobalProxy(OURS, system, system);
    }

    @Test
    public void isTakenBack() {
        for (String first : new String[] {null, "", ":0", "10.0.0.1:3128"}) {
            system.setting = first;
            GlobalProxy p = proxy();
            p.set();
            p.set();
            assertEquals(OURS, system.setting);
            p.clear();
            p.clear();
            assertEquals(first == null || first.isEmpty() ? GlobalProxy.NONE : first, system.setting);
        }
    }

    @Test
    public void isTakenBackByTheNextProcess() {
        for (int at = 0; at < 4; at++) {
            system.setting = "10.0.0.1:3128";
            system.before = null;
            system.dies = at;
            GlobalProxy p = proxy();
            try {
                p.set();
                p.clear();
            } catch (IllegalStateException e) {
                // killed
            }
            system.dies = -1;
            proxy().clear();
            assertEquals("killed at step " + at, "10.0.0.1:3128", system.setting);
            assertNull("killed at step " + at, system.before);
        }
    }

    @Test
    public void whatOthersSetStays() {
        proxy().set();
        system.setting = "10.0.0.2:3128";
        proxy().clear();
        assertEquals("set by somebody meanwhile", "10.0.0.2:3128", system.setting);
        system.setting = OURS;
        GlobalProxy p = proxy();
        p.set();
        p.clear();
        assertEquals("set by hand", OURS, system.setting);
    }

    @Test
    public void nothingIsSetByAProcessThatCrashes() {
        GlobalProxy p = proxy();
        p.set();
        p.end();
        p.set();
        assertEquals(GlobalProxy.NONE, system.setting);
    }

    @Test
    public void whatIsForbiddenChangesNothing() {
        system.forbidden = true;
        GlobalProxy p = proxy();
        assertThrows(SecurityException.class, p::set);
        assertNull(system.before);
        system.forbidden = false;
        p.set();
        system.forbidden = true;
        assertThrows(SecurityException.class, p::clear);
        system.forbidden = false;
        proxy().clear();
        assertEquals(GlobalProxy.NONE, system.setting);
    }
}
