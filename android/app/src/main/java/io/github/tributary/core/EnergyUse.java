package io.github.tributary.core;

import org.json.JSONException;
import org.json.JSONObject;

/** What a phone used for a download. A value. */
public final class EnergyUse {
    /** On a charger at some time: the rest is then unknown. */
    public final boolean charged;

    /** The energy in joules; NaN = unknown. */
    public final double joules;

    /** The charge in percent of a full battery; NaN = unknown. */
    public final double percent;

    EnergyUse(boolean charged, double joules, double percent) {
        this.charged = charged;
        this.joules = joules;
        this.percent = percent;
    }

    public JSONObject toJson() throws JSONException {
        JSONObject o = new JSONObject().put("charged", charged);
        if (!Double.isNaN(joules)) { // JSON has no NaN
            o.put("joules", joules);
        }
        return Double.isNaN(percent) ? o : o.put("percent", percent);
    }

    /** Parses what {@link #toJson} wrote. */
    public static EnergyUse parse(JSONObject o) {
        return new EnergyUse(o.optBoolean("charged"), o.optDouble("joules"), o.optDouble("percent"));
    }
}
