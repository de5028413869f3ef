package config

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzConfig: any file is either refused, or shown in a form that has the same meaning.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"", "listen = \"127.0.0.1:3128\"\nadmin = \"\"\nlinks = [\"wlan0\"]\n", "budget = \"32MiB\"\ntransfer_window = 8388608",
		"[link.wlan0]\nenabled = true\ndns = [\"1.1.1.1\", \"[::1]:5353\"]\nmetered = false\nmax_rate = \"20Mbit/s\"",
		"[link.\"eth0.100\"]\nmetered = true\n[link.a]\n", "wait_for_link = \"1m30s\"", "link = { x = { dns = [] } }",
		"connect_ports = [443, 8443]\nallow_users = [\"all\"]\nallow_destinations = [\"10.0.0.0/8\"]", "link.a.metered = true",
		"listn = 1", "[link]\na = 1", "links = 1\nbudget = -1", "control = \"/run/\\u0001\"", "admin.x = 2", "[[link]]\n[[link]]",
		"links = []\nconnect_ports = []\n[link]", "listen = \"\"\"\na\n\"\"\"\nbudget = true",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := &File{Config: Default()}
		if wrong := file.parse(text); len(wrong) > 0 {
			if file.place(wrong).Error() == "" {
				t.Error("an error without a text")
			}
			return
		}
		if file.Check() != nil {
			return
		}
		var b bytes.Buffer
		if err := file.WriteTOML(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(b.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if !reflect.DeepEqual(again, file.Config) {
			t.Errorf("%q\nis shown as\n%s\ngot  %+v\nwant %+v", text, b.String(), again, file.Config)
		}
		if err := file.WriteJSON(&b); err != nil {
			t.Error(err)
		}
	})
}
