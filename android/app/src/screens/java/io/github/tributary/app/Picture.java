package io.github.tributary.app;

import static org.junit.Assert.assertTrue;

import android.app.Dialog;
import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.view.View;
import android.view.WindowManager;
import java.awt.image.BufferedImage;
import java.awt.image.IndexColorModel;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.imageio.ImageIO;

/** A picture of a screen, compared with one that was inspected. `make -C android pictures` renews those. */
final class Picture {
    private static final boolean RENEW = Boolean.getBoolean("tributary.pictures.renew");

    /**
     * The tolerance in 256 levels. Files hold 256 colors, most of them within 8 levels of the true ones; processors
     * round some pixels differently.
     */
    private static final int LEVELS = 32;

    /**
     * The share of all pixels that may differ by more: a tenth of the stroke of a letter, for example. A changed text
     * is 10 times as much.
     */
    private static final double PART = 0.0003;

    private final Bitmap bitmap;

    private Picture(Bitmap bitmap) {
        this.bitmap = bitmap;
    }

    /** Returns a picture of a whole window, and a dialog over it; null = no dialog. */
    static Picture of(View window, Dialog dialog) {
        Bitmap b = Bitmap.createBitmap(window.getWidth(), window.getHeight(), Bitmap.Config.ARGB_8888);
        Canvas canvas = new Canvas(b);
        window.draw(canvas);
        if (dialog != null) {
            WindowManager.LayoutParams at = dialog.getWindow().getAttributes();
            canvas.drawColor(((int) (at.dimAmount * 255)) << 24);
            View v = dialog.getWindow().getDecorView();
            canvas.translate((b.getWidth() - v.getWidth()) / 2f, (b.getHeight() - v.getHeight()) / 2f);
            v.draw(canvas);
        }
        return new Picture(b);
    }

    /** Returns a picture of a bitmap drawn by hand. */
    static Picture of(Bitmap bitmap) {
        return new Picture(bitmap);
    }

    /** Compares it with a file, or writes the file if requested. */
    void matches(File file) throws IOException {
        int w = bitmap.getWidth();
        int h = bitmap.getHeight();
        int[] pixels = new int[w * h];
        bitmap.getPixels(pixels, 0, w, 0, 0, w, h);
        if (RENEW) {
            file.getParentFile().mkdirs();
            ImageIO.write(indexed(pixels, w, h), "png", file);
            return;
        }
        assertTrue(file + " is missing: make -C android pictures", file.exists());
        BufferedImage golden = ImageIO.read(file);
        boolean same = golden.getWidth() == w && golden.getHeight() == h;
        long differ = 0;
        for (int i = 0; same && i < pixels.length; i++) {
            differ += far(pixels[i], golden.getRGB(i % w, i / w)) ? 1 : 0;
        }
        same &= differ <= PART * pixels.length;
        if (!same) {
            File seen = new File("out/pictures", file.getName());
            seen.getParentFile().mkdirs();
            ImageIO.write(indexed(pixels, w, h), "png", seen);
            throw new AssertionError(
                    differ + " of " + pixels.length + " pixels differ: see " + seen + ", and if it is as it should be: make -C android pictures");
        }
    }

    private static boolean far(int a, int b) {
        for (int shift = 0; shift < 24; shift += 8) {
            if (Math.abs((a >> shift & 255) - (b >> shift & 255)) > LEVELS) {
                return true;
            }
        }
        return false;
    }

    /** Returns a picture of at most 256 colors: the most frequent ones among those that are some levels apart. */
    private static BufferedImage indexed(int[] pixels, int w, int h) {
        final Map<Integer, Integer> count = new HashMap<Integer, Integer>();
        for (int p : pixels) {
            count.merge(p & 0xffffff, 1, Integer::sum);
        }
        List<Integer> colors = new ArrayList<Integer>(count.keySet());
        colors.sort((a, b) -> !count.get(a).equals(count.get(b)) ? count.get(b) - count.get(a) : a - b);
        List<Integer> palette = new ArrayList<Integer>();
        for (int c : colors) {
            if (palette.size() < 256 && distance(c, palette) > 8) {
                palette.add(c);
            }
        }
        byte[] r = new byte[palette.size()];
        byte[] g = new byte[palette.size()];
        byte[] b = new byte[palette.size()];
        for (int i = 0; i < palette.size(); i++) {
            r[i] = (byte) (palette.get(i) >> 16);
            g[i] = (byte) (palette.get(i) >> 8);
            b[i] = (byte) (int) palette.get(i);
        }
        BufferedImage image = new BufferedImage(w, h, BufferedImage.TYPE_BYTE_INDEXED, new IndexColorModel(8, palette.size(), r, g, b));
        Map<Integer, Integer> index = new HashMap<Integer, Integer>();
        for (int c : colors) {
            index.put(c, nearest(c, palette));
        }
        for (int i = 0; i < pixels.length; i++) {
            image.getRaster().setSample(i % w, i / w, 0, index.get(pixels[i] & 0xffffff));
        }
        return image;
    }

    private static int distance(int a, int b) {
        int most = 0;
        for (int shift = 0; shift < 24; shift += 8) {
            most = Math.max(most, Math.abs((a >> shift & 255) - (b >> shift & 255)));
        }
        return most;
    }

    private static int distance(int c, List<Integer> palette) {
        return palette.isEmpty() ? 255 : distance(c, palette.get(nearest(c, palette)));
    }

    private static int nearest(int c, List<Integer> palette) {
        int best = 0;
        for (int i = 1; i < palette.size(); i++) {
            best = distance(c, palette.get(i)) < distance(c, palette.get(best)) ? i : best;
        }
        return best;
    }
}
