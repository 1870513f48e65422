package matrix

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jobferry/jobferry/e2e/matrix/table"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// results is the folder with a file for each run.
type results string

func (r results) file(of run) string {
	name := strings.ReplaceAll(of.folder, "/", "-")
	if of.hub != "" {
		name += "-hub-" + of.hub
	}
	if of.worker != "" {
		name += "-worker-" + of.worker
	}
	return filepath.Join(string(r), name+".json")
}

// read returns the outcome of a run, or nil if there is none yet.
func (r results) read(of run) (*table.Outcome, error) {
	file, err := os.Open(r.file(of))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	outcome, err := table.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file to run it again", file.Name(), err)
	}
	return outcome, nil
}

// passed says whether a run is over, and well.
func (r results) passed(of run) (bool, error) {
	outcome, err := r.read(of)
	return outcome != nil && outcome.Passed(of.stories()), err
}

// table is what the results say of all pairs.
func (r results) table(o *Options) (*table.Table, error) {
	t := &table.Table{Hubs: o.Hubs, Workers: o.Workers, Patches: map[string]string{}}
	for _, release := range o.releases() {
		version, err := binaries.Version(release)
		if err != nil {
			return nil, err
		}
		t.Patches[string(release)] = version
	}
	outcomes := map[run]*table.Outcome{}
	for _, pair := range o.pairs() {
		for _, of := range runsOf(pair) {
			outcome, err := r.read(of)
			if err != nil {
				return nil, err
			}
			if outcome != nil {
				outcomes[of] = outcome
				t.Add(outcome)
			}
		}
	}
	for _, f := range features {
		t.Rows = append(t.Rows, f.row(o.pairs(), outcomes))
	}
	return t, nil
}

func (f feature) row(pairs []table.Pair, outcomes map[run]*table.Outcome) table.Row {
	row := table.Row{Feature: f.name, Cells: map[table.Pair]table.Cell{}}
	for _, pair := range pairs {
		if !f.has(pair.Hub) {
			row.Cells[pair] = table.Cell{Answer: table.Untried, Reason: f.why}
		} else if outcome := outcomes[f.runOf(pair)]; outcome != nil {
			row.Cells[pair] = outcome.Verdict(f.stories)
		}
	}
	return row
}
