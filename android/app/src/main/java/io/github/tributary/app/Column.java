package io.github.tributary.app;

import android.content.Context;
import android.util.AttributeSet;
import android.widget.LinearLayout;
import io.github.tributary.R;

/** A column that is no wider than people like to read, even on a tablet. */
public final class Column extends LinearLayout {
    public Column(Context context, AttributeSet attrs) {
        super(context, attrs);
    }

    @Override
    protected void onMeasure(int width, int height) {
        int most = getResources().getDimensionPixelSize(R.dimen.column);
        if (MeasureSpec.getMode(width) != MeasureSpec.UNSPECIFIED && MeasureSpec.getSize(width) > most) {
            width = MeasureSpec.makeMeasureSpec(most, MeasureSpec.EXACTLY);
        }
        super.onMeasure(width, height);
    }
}
