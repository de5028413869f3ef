package io.github.tributary.core;

/** The system's proxy setting, and the state that outlives a process. */
final class FakeSystem implements GlobalProxy.Setting, GlobalProxy.Memory {
    String setting = "";
    String before;
    boolean forbidden;
    int dies = -1; // the process, at this one of the steps that change something

    private void step() {
        if (dies-- == 0) {
            throw new IllegalStateException("killed");
        }
    }

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
}
