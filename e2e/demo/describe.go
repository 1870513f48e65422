package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/demo/state"
)

// describe is the command that shows the shards of the divided Job.
const describe = "kubectl jobferry describe -n " + scenario.Namespace + " " + scenario.Divided

// describeDivided has the plugin describe the divided Job while several workers run it.
func (d *demo) describeDivided(ctx context.Context) error {
	isDivided := func(s *state.State) bool {
		j := s.Jobs[s.Index(scenario.Divided)]
		return strings.Contains(j.Cluster, ",") && j.Succeeded > 0
	}
	if err := d.board.until(ctx, func(s *state.State) bool { return isDivided(s) || s.Settled() }); err != nil {
		return err
	}
	if s, _ := d.board.read(); !isDivided(&s) {
		return fmt.Errorf("expected several workers to run Job %s at once, but only one did", scenario.Divided)
	}
	text, err := d.plugin(ctx, "describe", "-n", scenario.Namespace, scenario.Divided)
	d.description = text
	return err
}
