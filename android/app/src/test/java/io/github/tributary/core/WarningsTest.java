package io.github.tributary.core;

import static org.junit.Assert.assertEquals;

import org.json.JSONObject;
import org.junit.Test;

/** The user is warned before a limit is used up. */
public class WarningsTest {
    private static String due(String accounts) throws Exception {
        return Warnings.due(Status.parse(new JSONObject("{'accounts':[" + accounts + "]}")), "2026-11-23").keySet().toString();
    }

    private static String account(String since, String quotas) {
        return "{'name':'cellular-1','since':'" + since + "'" + quotas + "}";
    }

    @Test
    public void at80Percent() throws Exception {
        assertEquals("[]", due(""));
        assertEquals("[]", due(account("2026-11-15", "")));
        assertEquals("[]", due(account("2026-11-15", ",'monthly':{'limit_bytes':1000,'left_bytes':201}")));
        assertEquals("[cellular-1 month 2026-11-15]", due(account("2026-11-15", ",'monthly':{'limit_bytes':1000,'left_bytes':200}")));
        assertEquals("[cellular-1 month 2026-11-15]", due(account("2026-11-15", ",'monthly':{'limit_bytes':1000,'left_bytes':0}")));
        String both = ",'monthly':{'limit_bytes':9000000000000000000,'left_bytes':1},'daily':{'limit_bytes':500,'left_bytes':3}";
        assertEquals("[cellular-1 month 2026-11-15, cellular-1 day 2026-11-23]", due(account("2026-11-15", both)));
        assertEquals("nothing is known yet", "[]", due(account("", ",'monthly':{'limit_bytes':1000,'left_bytes':0}")));
    }
}
