package daemon

import (
	"context"
	"os"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/doctor"
	"github.com/tributary-http/tributary/internal/front/page"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// findings returns a function for the live page that looks for problems as `tributary doctor --offline` does: it sends
// nothing.
func findings(cfg config.Config) func(context.Context) []page.Finding {
	return func(ctx context.Context) (all []page.Finding) {
		facts := doctor.Collect(ctx, doctor.Options{
			Config: cfg, ConfigFile: config.Find("", os.Getenv), Getenv: os.Getenv, Candidates: transport.Candidates,
		})
		for _, c := range doctor.Judge(facts) {
			if c.Verdict == doctor.Warn || c.Verdict == doctor.Fail {
				all = append(all, page.Finding{
					Name: c.Name, Fails: c.Verdict == doctor.Fail, Found: c.Found, Fix: c.Fix,
				})
			}
		}
		return all
	}
}
