package use

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// ErrUnknown means that there is no recipe for a program.
var ErrUnknown = errors.New("the settings of this program are unknown")

// record records the changes made for a program.
type record struct {
	Gateway string    `json:"gateway"`
	Hosts   []string  `json:"hosts"`
	Files   []changed `json:"files"`
}

const maxRecord = 64 << 20

// User changes the settings of one user of the machine.
type User struct {
	Settings
	Record string // path of the file that records the changes
}

// Change describes the change of one file.
type Change struct {
	Path    string
	Created bool
	Removed []string // lines, without passwords
	Added   []string
}

// Report describes the changes that were made, or would be made.
type Report struct {
	Changes []Change
	Hosts   []string // hosts that the gateway fetches from for this program
	Check   []string // URLs at the gateway; one of them should answer
	Notes   []string // for the user
}

// Unchanged reports whether there was nothing to change.
func (r Report) Unchanged() bool { return len(r.Changes) == 0 }

// Plan returns the changes that Do would make.
func (u *User) Plan(name string) (Report, error) {
	all, err := u.load()
	if err != nil {
		return Report{}, err
	}
	p, now, err := u.plan(name, all)
	if err != nil {
		return Report{}, err
	}
	return p.report(now), nil
}

// Do changes the settings of a program so that it downloads through the gateway. Before anything is written, it calls
// ready with the planned changes; an error of ready ends the attempt.
func (u *User) Do(ctx context.Context, name string, ready func(Report) error) (Report, error) {
	all, unlock, err := u.open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	p, now, err := u.plan(name, all)
	if err != nil {
		return Report{}, err
	}
	report := p.report(now)
	if err := ready(report); err != nil {
		return report, err
	}
	if report.Unchanged() {
		return report, nil
	}
	before := all[name]
	if err := u.undo(before); err != nil { // so that each edit applies to the original file
		return report, err
	}
	r := record{Gateway: u.Gateway, Hosts: p.hosts}
	p.files = slices.DeleteFunc(p.files, func(f planned) bool { return len(f.edits) == 0 })
	for _, f := range p.files {
		r.Files = append(r.Files, changed{
			Path:    f.path,
			Created: !f.exists,
			Before:  digest(f.text),
			After:   digest(apply(f.text, f.edits)),
			Edits:   f.edits,
		})
	}
	all[name] = r
	if err := u.save(all); err != nil { // first, so that an interrupted change can be undone
		return report, err
	}
	for i, f := range p.files {
		folders, err := replace(f.path, f.text, apply(f.text, f.edits), f.exists, u.UID)
		if r.Files[i].Folders = folders; err == nil && len(folders) > 0 {
			err = u.save(all)
		}
		if err != nil {
			return report, errors.Join(err, u.take(name, all))
		}
	}
	return report, nil
}

// Undo reverts the changes of Do. Its report is empty if there were none.
func (u *User) Undo(ctx context.Context, name string) (Report, error) {
	if _, ok := programNamed(name); !ok {
		return Report{}, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	all, unlock, err := u.open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	var report Report
	for _, c := range all[name].Files {
		now, exists, err := read(c.Path, u.UID)
		if err != nil {
			return Report{}, err
		}
		text, err := c.revert(now)
		if err != nil && exists {
			return Report{}, err
		}
		if exists && text != now {
			report.Changes = append(report.Changes, change(c.Path, false, now, text))
		}
	}
	return report, u.take(name, all)
}

// Changed returns the programs whose settings were changed, in order.
func (u *User) Changed() ([]string, error) {
	all, err := u.load()
	return slices.Sorted(maps.Keys(all)), err
}

// take undoes the recorded changes for a program, and deletes its record.
func (u *User) take(name string, all map[string]record) error {
	if err := u.undo(all[name]); err != nil {
		return err
	}
	if _, ok := all[name]; !ok {
		return nil
	}
	for _, c := range all[name].Files {
		if c.Created {
			inherit(all, name, c)
		}
	}
	delete(all, name)
	return u.save(all)
}

// inherit passes a file that was created for one program, but contains lines of another one, to that one.
func inherit(all map[string]record, from string, c changed) {
	for name, r := range all {
		for i := range r.Files {
			if name != from && r.Files[i].Path == c.Path {
				r.Files[i].Created, r.Files[i].Folders = true, c.Folders
				return
			}
		}
	}
}

func (u *User) undo(r record) error {
	var errs []error
	for _, c := range slices.Backward(r.Files) { // the folders of the first file may contain the others
		now, exists, err := read(c.Path, u.UID)
		if err != nil || !exists {
			errs = append(errs, err)
			continue
		}
		text, err := c.revert(now)
		switch {
		case err != nil:
		case text == now && !c.Created:
		case text == "" && c.Created:
			err = remove(c.Path, now, c.Folders, u.UID)
		default:
			_, err = replace(c.Path, now, text, true, u.UID)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// plan makes the plan for a program on the content of files before earlier edits. now returns their current content.
func (u *User) plan(name string, all map[string]record) (p *plan, now func(string) string, err error) {
	recipe, ok := programNamed(name)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if u.Getenv("HOME") == "" {
		return nil, nil, errors.New("HOME is not set: set it to find the settings")
	}
	present := map[string]string{}
	p = &plan{Settings: u.Settings, program: name, done: map[string][]edit{}}
	for _, c := range all[name].Files {
		p.done[c.Path] = c.Edits
	}
	p.before = func(path string) (string, bool, error) {
		text, exists, err := read(path, u.UID)
		if err != nil {
			return "", false, err
		}
		present[path] = text
		i := slices.IndexFunc(all[name].Files, func(c changed) bool { return c.Path == path })
		if i < 0 || !exists {
			return text, exists, nil
		}
		c := all[name].Files[i]
		text, err = c.revert(text)
		return text, !c.Created || text != "", err
	}
	if err := errors.Join(recipe.make(p), p.trusted()); err != nil {
		return nil, nil, err
	}
	for _, c := range all[name].Files { // files that are no longer part of the plan
		if !slices.ContainsFunc(p.files, func(f planned) bool { return f.path == c.Path }) {
			text, exists, err := p.before(c.Path)
			if err != nil {
				return nil, nil, err
			}
			p.files = append(p.files, planned{path: c.Path, text: text, exists: exists})
		}
	}
	return p, func(path string) string { return present[path] }, nil
}

// report compares a plan with the current files.
func (p *plan) report(now func(string) string) Report {
	r := Report{Hosts: p.hosts, Check: p.checks, Notes: p.notes}
	for _, f := range p.files {
		then, is := apply(f.text, f.edits), now(f.path)
		if then != is && (is == f.text || !sameEdits(f.edits, p.done[f.path])) {
			r.Changes = append(r.Changes, change(f.path, is == "" && !f.exists, is, then))
		}
	}
	return r
}

// sameEdits reports whether two lists of edits replace the same lines by the same ones, at any position.
func sameEdits(a, b []edit) bool {
	return slices.EqualFunc(a, b, func(a, b edit) bool {
		return a.Old == b.Old && strings.TrimSpace(a.New) == strings.TrimSpace(b.New)
	})
}

// change returns the lines that differ.
func change(path string, created bool, before, after string) Change {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	c := Change{Path: path, Created: created}
	for _, l := range a {
		if !slices.Contains(b, l) && strings.TrimSpace(l) != "" {
			c.Removed = append(c.Removed, masked(strings.TrimRight(l, "\r")))
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) && strings.TrimSpace(l) != "" {
			c.Added = append(c.Added, masked(strings.TrimRight(l, "\r")))
		}
	}
	return c
}

// open locks and reads the record; no other process can change it until unlock is called.
func (u *User) open(ctx context.Context) (all map[string]record, unlock func(), err error) {
	if err := statefile.Own(u.Record); err != nil {
		return nil, nil, err
	}
	if unlock, err = statefile.Lock(ctx, u.Record); err != nil {
		return nil, nil, err
	}
	if all, err = u.load(); err != nil {
		unlock()
		return nil, nil, err
	}
	return all, unlock, nil
}

func (u *User) load() (map[string]record, error) {
	all := map[string]record{}
	b, err := statefile.Read(u.Record, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("the record of what was changed: %w", err)
	}
	return all, nil
}

func (u *User) save(all map[string]record) error {
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return statefile.Replace(u.Record, b)
}
