package fault

import (
	"strings"
	"testing"
)

// TestTable: every outcome has a name of its own, and one with which a request can end says all that its client needs.
func TestTable(t *testing.T) {
	if len(rows) != int(Unknown)+1 {
		t.Fatalf("%d rows for %d outcomes", len(rows), Unknown+1)
	}
	names := map[string]Outcome{}
	for i, row := range rows {
		o := Outcome(i)
		if other, has := names[row.Name]; has || row.Name == "" {
			t.Errorf("outcomes %d and %d are both named %q", other, o, row.Name)
		}
		names[row.Name] = o
		if o == Complete {
			continue
		}
		if row.Status < 400 || row.ProxyStatus == "" || row.Exit == 0 || row.Text == "" || row.Next == "" {
			t.Errorf("%v: %+v", o, row)
		}
		if strings.HasSuffix(row.Text, ".") || strings.HasSuffix(row.Next, ".") || strings.ToLower(row.Next[:1]) != row.Next[:1] {
			t.Errorf("%v: %q, %q", o, row.Text, row.Next)
		}
		if row.Blame == BlameOrigin && row.Exit == ExitPermission || row.Status == unavailable && row.Blame == BlameLink {
			t.Errorf("%v: the table contradicts itself: %+v", o, row)
		}
	}
}
