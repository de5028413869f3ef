package opening

import "testing"

func TestBackground(t *testing.T) {
	for field, want := range map[string]bool{
		"u=7": true, "i, u=7": true, " u=7;a=b ,i": true, "u=1, u=7": true, "u=7, i=?0": true,
		"": false, "u": false, "u=3": false, "i": false, "u=7, u=2": false, "uu=7": false, "x=\"u=7\"": false, "u=70": false,
	} {
		if got := Background(map[string][]string{"Priority": {field}}); got != want {
			t.Errorf("%q: %v", field, got)
		}
	}
	if !Background(map[string][]string{"Priority": {"i", "u=7"}}) || Background(nil) {
		t.Error("several lines, or none")
	}
}
