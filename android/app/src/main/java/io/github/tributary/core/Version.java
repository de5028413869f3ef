package io.github.tributary.core;

/** What distinguishes one version of an object from another. A value. */
public final class Version {
    /** A version of which nothing is known. */
    public static final Version NONE = new Version("", "", -1, "");

    /** The strong validator, as for If-Range; "" = it cannot be resumed. */
    public final String validator;

    /** A digest of the version's other properties. */
    public final String mark;

    /** The size in bytes; -1 = unknown. */
    public final long size;

    /** Where it was found: a validator means nothing elsewhere. */
    public final String place;

    public Version(String validator, String mark, long size, String place) {
        this.validator = validator;
        this.mark = mark;
        this.size = size;
        this.place = place;
    }
}
