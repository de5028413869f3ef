package transport

import (
	"cmp"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/energy"
	"github.com/tributary-http/tributary/internal/link"
)

// priorRadios are the radios that links of a kind are believed to have where a goal asks and the configuration does not say: both
// of one phone, so that they compare.
var priorRadios = map[string]string{link.KindWiFi: "galaxy-s3/wifi", link.KindCellular: "galaxy-s3/lte"}

// radios finds the radios of links. follow owns it.
type radios map[string]*energy.Radio // by name, so that a link that is seen again is the same

// equip gives a link its goal and its radio.
func (r radios) equip(cfg *config.Config, l *link.Link) error {
	c := cfg.Link[l.Name]
	goal := cmp.Or(c.Goal, cfg.Goal)
	l.Frugal = goal == config.GoalFrugal
	l.PerPercent = 0
	if goal == config.GoalCheapest {
		l.PerPercent = int64(cfg.MeteredPerPercent)
	}
	name := c.Radio
	if name == "" && l.Frugal {
		name = priorRadios[l.Kind]
	}
	if name == "" {
		return nil
	}
	if r[name] == nil {
		found, err := energy.FindRadio(name)
		if err != nil {
			return err
		}
		r[name] = found
	}
	l.Radio = r[name]
	return nil
}
