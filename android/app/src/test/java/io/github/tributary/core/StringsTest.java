package io.github.tributary.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.Test;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.w3c.dom.NodeList;

/** Each language has every text, with the same arguments. */
public class StringsTest {
    private static final File RES = new File("app/res");
    private static final Pattern ARGUMENT = Pattern.compile("%\\d\\$[^a-zA-Z]*[a-zA-Z]|\\\\n");

    private static Element root(File file) throws Exception {
        return DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file).getDocumentElement();
    }

    /** Returns the translatable texts of a file by name: the arguments of each, in their order. */
    private static Map<String, List<String>> texts(File file) throws Exception {
        Map<String, List<String>> all = new TreeMap<String, List<String>>();
        NodeList nodes = root(file).getChildNodes();
        for (int i = 0; i < nodes.getLength(); i++) {
            Node n = nodes.item(i);
            if (!(n instanceof Element) || ((Element) n).getAttribute("translatable").equals("false")) {
                continue;
            }
            List<String> arguments = new ArrayList<String>();
            Matcher m = ARGUMENT.matcher(n.getTextContent());
            while (m.find()) {
                arguments.add(m.group());
            }
            Collections.sort(arguments);
            if (n.getNodeName().equals("plurals")) { // languages have more or fewer forms, some numberless
                arguments = new ArrayList<String>(new TreeSet<String>(arguments));
            }
            assertTrue(file + ": an unescaped apostrophe ends a text", !n.getTextContent().matches("(?s).*(^|[^\\\\])'.*"));
            all.put(n.getNodeName() + " " + ((Element) n).getAttribute("name"), arguments);
        }
        return all;
    }

    /** Returns the plural forms of a language, as Android knows them (CLDR). */
    private static Set<String> forms(String language) {
        switch (language) {
            case "ar":
                return new TreeSet<String>(Arrays.asList("zero", "one", "two", "few", "many", "other"));
            default:
                return new TreeSet<String>(Arrays.asList("one", "other"));
        }
    }

    @Test
    public void everyPluralHasTheFormsOfItsLanguage() throws Exception {
        NodeList offered = root(new File(RES, "xml/locales.xml")).getElementsByTagName("locale");
        for (int i = 0; i < offered.getLength(); i++) {
            String language = ((Element) offered.item(i)).getAttribute("android:name");
            File file = new File(RES, (language.equals("en") ? "values" : "values-" + language) + "/strings.xml");
            NodeList plurals = root(file).getElementsByTagName("plurals");
            assertTrue(language, plurals.getLength() > 0);
            for (int k = 0; k < plurals.getLength(); k++) {
                NodeList items = ((Element) plurals.item(k)).getElementsByTagName("item");
                Set<String> have = new TreeSet<String>();
                for (int j = 0; j < items.getLength(); j++) {
                    have.add(((Element) items.item(j)).getAttribute("quantity"));
                    assertTrue(language, !items.item(j).getTextContent().trim().isEmpty());
                }
                assertEquals(language, forms(language), have);
            }
        }
    }

    /** In a language written from right to left they would be on the wrong side. */
    @Test
    public void noLayoutSaysLeftOrRight() throws Exception {
        for (File f : new File(RES, "layout").listFiles()) {
            String text = new String(Files.readAllBytes(f.toPath()), StandardCharsets.UTF_8);
            Matcher m = Pattern.compile("android:\\w*(Left|Right)=|=\"(left|right)\\b").matcher(text);
            assertTrue(f + ": " + (m.find() ? m.group() : ""), !m.find(0));
        }
    }

    /** The daemon's codes for why a download failed, or why a relay was not paired. */
    @Test
    public void everyFailureHasAText() throws Exception {
        worded("why a download failed", "failure_", 20, Failure.STARTING, Failure.DAEMON, Failure.FILE);
        worded("why a relay was not paired, or not forgotten", "pair_failed_", 7, RelayWish.NO_ANSWER);
    }

    /** Checks that the codes of a table, with those in beside, are the ones that the app has texts for. */
    private static void worded(String table, String prefix, int least, String... beside) throws Exception {
        String page = new String(Files.readAllBytes(new File("../docs/APPBRIDGE.md").toPath()), StandardCharsets.UTF_8);
        Set<String> codes = new TreeSet<String>(Arrays.asList(beside));
        Matcher m = Pattern.compile("(?m)^\\| `([a-z_]+)`").matcher(page.split("\\| code \\| " + table + " \\|")[1].split("\n\n")[0]);
        while (m.find()) {
            codes.add(m.group(1));
        }
        Set<String> have = new TreeSet<String>();
        for (String name : texts(new File(RES, "values/strings.xml")).keySet()) {
            if (name.startsWith("string " + prefix)) {
                have.add(name.substring("string ".length() + prefix.length()));
            }
        }
        assertTrue("only " + codes, codes.size() > least);
        assertEquals(codes, have);
    }

    @Test
    public void everyLanguageHasEveryText() throws Exception {
        Map<String, List<String>> english = texts(new File(RES, "values/strings.xml"));
        NodeList offered = root(new File(RES, "xml/locales.xml")).getElementsByTagName("locale");
        assertTrue(offered.getLength() > 1);
        int folders = 1;
        for (File f : RES.listFiles()) {
            folders += new File(f, "strings.xml").exists() && !f.getName().equals("values") ? 1 : 0;
        }
        assertEquals("a language that the settings do not offer, or the reverse", folders, offered.getLength());
        for (int i = 0; i < offered.getLength(); i++) {
            String language = ((Element) offered.item(i)).getAttribute("android:name");
            if (!language.equals("en")) {
                assertEquals(language, english, texts(new File(RES, "values-" + language + "/strings.xml")));
            }
        }
    }
}
