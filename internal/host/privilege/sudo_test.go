package privilege

import "testing"

func TestSudo(t *testing.T) {
	for self, want := range map[string]string{
		"/usr/bin/tributary": "sudo tributary status", "/home/me/.local/bin/tributary": "sudo /home/me/.local/bin/tributary status",
		"": "sudo tributary status", "/home/my name/tributary": "sudo '/home/my name/tributary' status",
	} {
		if got := sudo(self, "status"); got != want {
			t.Errorf("%s: %s, want %s", self, got, want)
		}
	}
}
