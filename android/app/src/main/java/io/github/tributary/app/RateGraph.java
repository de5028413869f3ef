package io.github.tributary.app;

import android.content.Context;
import android.graphics.Canvas;
import android.graphics.Paint;
import android.graphics.Path;
import android.util.AttributeSet;
import android.view.View;
import io.github.tributary.R;
import io.github.tributary.core.Net;
import io.github.tributary.core.RateHistory;
import java.util.Collections;
import java.util.Map;

/**
 * The rates of the last minute, with the networks stacked: the top edge is their sum. Time runs in reading direction.
 */
public final class RateGraph extends View {
    private final Paint paint = new Paint(Paint.ANTI_ALIAS_FLAG);
    private Map<Net.Kind, long[]> points = Collections.emptyMap();

    public RateGraph(Context context, AttributeSet attrs) {
        super(context, attrs);
    }

    /** Shows points of {@link RateHistory#points}, with words for people who cannot see them. */
    void show(Map<Net.Kind, long[]> points, String words) {
        this.points = points;
        if (!words.contentEquals(getContentDescription() == null ? "" : getContentDescription())) {
            setContentDescription(words);
        }
        invalidate();
    }

    /** Returns the color resource of a kind of network. */
    static int color(Net.Kind kind) {
        switch (kind) {
            case WIFI:
                return R.color.wifi;
            case CELLULAR:
                return R.color.cellular;
            default:
                return R.color.other;
        }
    }

    /** Returns the highest sum in bytes per second. */
    private long top() {
        long top = 0;
        for (int i = 0; i < RateHistory.SECONDS; i++) {
            long sum = 0;
            for (long[] line : points.values()) {
                sum += line[i];
            }
            top = Math.max(top, sum);
        }
        return top;
    }

    @Override
    protected void onDraw(Canvas canvas) {
        float w = getWidth();
        float h = getHeight();
        float line = getResources().getDisplayMetrics().density;
        if (getLayoutDirection() == LAYOUT_DIRECTION_RTL) {
            canvas.scale(-1, 1, w / 2, 0);
        }
        paint.setColor(getContext().getColor(R.color.axis));
        canvas.drawRect(0, h - line, w, h, paint);
        float scale = (h - 2 * line) / Math.max(1, top());
        float step = w / (RateHistory.SECONDS - 1);
        float[] base = new float[RateHistory.SECONDS];
        for (Map.Entry<Net.Kind, long[]> e : points.entrySet()) {
            Path area = new Path();
            area.moveTo(w, h - line - base[RateHistory.SECONDS - 1]);
            for (int i = RateHistory.SECONDS - 2; i >= 0; i--) {
                area.lineTo(i * step, h - line - base[i]);
            }
            for (int i = 0; i < RateHistory.SECONDS; i++) {
                base[i] += e.getValue()[i] * scale;
                area.lineTo(i * step, h - line - base[i]);
            }
            area.close();
            paint.setColor(getContext().getColor(color(e.getKey())));
            canvas.drawPath(area, paint);
        }
    }
}
