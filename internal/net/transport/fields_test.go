package transport

import (
	"reflect"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestLinkFields: each key of [link.NAME] has an effect, in the table of the link and in that of a pattern.
func TestLinkFields(t *testing.T) {
	on, off := true, false
	setting := func(c config.Config) any { return LinkOptions(c).Of("w0") }
	fields := map[string]struct {
		set    config.Link
		effect func(c config.Config) any
	}{
		"Enabled": {config.Link{Enabled: &off}, func(c config.Config) any { return []any{setting(c), c.Allows("w0"), anyAllowed(c)} }},
		"DNS":     {config.Link{DNS: []string{"192.0.2.53"}}, setting},
		"Metered": {config.Link{Metered: &on}, setting},
		"Trusted": {config.Link{Trusted: &off}, func(c config.Config) any { return c.Trusts("w0") }},
		"MaxRate": {config.Link{MaxRate: 1 << 20}, func(c config.Config) any { return rates(c)[c.RateTable("w0")] }},
		"Goal":    {config.Link{Goal: schedule.CheapestGoal}, func(c config.Config) any { return equipped(t, c).Goal }},
		"Radio":   {config.Link{Radio: "galaxy-s3/lte"}, func(c config.Config) any { return equipped(t, c).Radio != nil }},
		"Monthly": {config.Link{Monthly: 1 << 30}, func(c config.Config) any { return new(dataLimits).limits(c)[account(&c, link.Link{Name: "w0"})] }},
		"Via": {config.Link{Via: "socks5://127.0.0.1:1080"}, func(c config.Config) any { // not of a pattern
			var names []string
			for _, l := range new(Transport).upstreams(c) {
				names = append(names, l.Name+l.Via)
			}
			return append(names, LinkOptions(c).Taken...)
		}},
	}
	for f := range reflect.TypeFor[config.Link]().Fields() {
		tested, ok := fields[f.Name]
		if !ok {
			t.Errorf("no test shows that [link.NAME] %s has an effect", f.Tag.Get("toml"))
			continue
		}
		if reflect.ValueOf(tested.set).FieldByIndex(f.Index).IsZero() {
			t.Errorf("%s is not set", f.Name)
		}
		for _, table := range []string{"w0", "w*"} {
			if table == "w*" && f.Name == "Via" {
				continue
			}
			before, after := config.Default(), config.Default()
			before.Link = map[string]config.Link{table: {}}
			after.Link = map[string]config.Link{table: tested.set}
			if reflect.DeepEqual(tested.effect(before), tested.effect(after)) {
				t.Errorf("[link.%q] %s has no effect", table, f.Tag.Get("toml"))
			}
		}
	}
	t.Run("of a pattern, on an upstream proxy", func(t *testing.T) {
		c := config.Default()
		c.Link = map[string]config.Link{"w0": {Via: "socks5://127.0.0.1:1080"}, "w*": {Metered: &on}}
		if all := new(Transport).upstreams(c); len(all) != 1 || !all[0].Terms.Metered {
			t.Errorf("not metered: %+v", all)
		}
	})
}

// equipped returns the terms of a link with a configuration.
func equipped(t *testing.T, c config.Config) policy.Terms {
	l := link.Link{Name: "w0"}
	if err := (radios{}).terms(&c, &l); err != nil {
		t.Error(err)
	}
	return l.Terms
}
