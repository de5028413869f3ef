package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import org.junit.Test;

/** The system's proxy is ours while we run, and what it was afterwards. */
public class GlobalProxyTest {
    private static final String OURS = "127.0.0.1:8080";

    private String setting;
    private String before;
    private boolean forbidden;
    private int dies = -1; // at this of the steps that change something

    private void step() {
        if (dies-- == 0) {
            throw new IllegalStateException("killed");
        }
    }

    /** As a process sees it that begins now. */
    private GlobalProxy proxy() {
        return new GlobalProxy(
                OURS,
                new GlobalProxy.Setting() {
                    @Override
                    public String read() {
                        return setting;
                    }

                    @Override
                    public void write(String value) {
                        if (forbidden) {
                            throw new SecurityException();
                        }
                        step();
                        setting = value;
                    }
                },
                new GlobalProxy.Memory() {
                    @Override
                    public String before() {
                        return before;
                    }

                    @Override
                    public void remember(String b) {
                        step();
                        before = b;
                    }

                    @Override
                    public void forget() {
                        step();
                        before = null;
                    }
                });
    }

    @Test
    public void isTakenBack() {
        for (String first : new String[] {null, "", ":0", "10.0.0.1:3128"}) {
            setting = first;
            GlobalProxy p = proxy();
            p.set();
            p.set();
            assertEquals(OURS, setting);
            p.clear();
            p.clear();
            assertEquals(first == null || first.isEmpty() ? GlobalProxy.NONE : first, setting);
        }
    }

    @Test
    public void isTakenBackByTheNextProcess() {
        for (int at = 0; at < 4; at++) {
            setting = "10.0.0.1:3128";
            before = null;
            dies = at;
            GlobalProxy p = proxy();
            try {
                p.set();
                p.clear();
            } catch (IllegalStateException e) {
                // killed
            }
            dies = -1;
            proxy().clear();
            assertEquals("killed at step " + at, "10.0.0.1:3128", setting);
            assertNull("killed at step " + at, before);
        }
    }

    @Test
    public void whatOthersSetStays() {
        proxy().set();
        setting = "10.0.0.2:3128";
        proxy().clear();
        assertEquals("set by somebody meanwhile", "10.0.0.2:3128", setting);
        setting = OURS;
        GlobalProxy p = proxy();
        p.set();
        p.clear();
        assertEquals("set by hand", OURS, setting);
    }

    @Test
    public void nothingIsSetByAProcessThatCrashes() {
        GlobalProxy p = proxy();
        p.set();
        p.end();
        p.set();
        assertEquals(GlobalProxy.NONE, setting);
    }

    @Test
    public void whatIsForbiddenChangesNothing() {
        forbidden = true;
        GlobalProxy p = proxy();
        assertThrows(SecurityException.class, p::set);
        assertNull(before);
        forbidden = false;
        p.set();
        forbidden = true;
        assertThrows(SecurityException.class, p::clear);
        forbidden = false;
        proxy().clear();
        assertEquals(GlobalProxy.NONE, setting);
    }
}
