import java.util.Arrays;
import java.util.List;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;

/**
 * Runs tests by name: each argument is "package.Class" or "package.Class#method,method". Prints how many ran, and those that failed. Exit
 * code 0 = all passed, 1 = some failed, 3 = an argument names no test.
 */
public final class Named {
    private Named() {}

    public static void main(String[] args) throws Exception {
        int ran = 0;
        int failed = 0;
        for (String arg : args) {
            String[] parts = arg.split("#");
            Request all = Request.aClass(Class.forName(parts[0]));
            Result r = new JUnitCore().run(parts.length == 1 ? all : all.filterWith(named(Arrays.asList(parts[1].split(",")))));
            for (Failure f : r.getFailures()) {
                if (f.getDescription().getMethodName() == null || f.getDescription().getMethodName().equals("initializationError")) {
                    System.out.println("no test: " + arg + ": " + f.getMessage());
                    System.exit(3);
                }
                System.out.println("failed: " + f.getDescription().getMethodName());
            }
            if (r.getRunCount() == 0) {
                System.out.println("no test: " + arg);
                System.exit(3);
            }
            ran += r.getRunCount();
            failed += r.getFailureCount();
        }
        System.out.println(ran + " tests ran, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    /** Matches a method on any version of Android: "method" or "method[26]". */
    private static Filter named(final List<String> methods) {
        return new Filter() {
            @Override
            public boolean shouldRun(Description d) {
                if (d.isTest()) {
                    return methods.contains(d.getMethodName().split("\\[")[0]);
                }
                for (Description child : d.getChildren()) {
                    if (shouldRun(child)) {
                        return true;
                    }
                }
                return false;
            }

            @Override
            public String describe() {
                return String.valueOf(methods);
            }
        };
    }
}
