package view

import "github.com/jobferry/jobferry/e2e/demo/state"

func workers(s state.State, o Options) []line {
	t := table{columns: []column{
		{title: "worker"}, {title: "status"}, {title: "version", rank: 2}, {title: "nodes", right: true, rank: 3},
		{title: "jobs", right: true}, {title: "free CPU", right: true, rank: 1},
	}}
	for _, w := range s.Workers {
		status := styled("● Ready", green)
		if !w.Ready {
			status = styled("○ "+w.Reason, yellow)
		}
		t.rows = append(t.rows, []line{
			styled(w.Name, bold), status, text(or(w.Version, "-")), number(w.Nodes), number(w.Jobs), text(freeCPU(w)),
		})
	}
	t.fit(o.Width)
	return t.lines()
}

func freeCPU(w state.Worker) string {
	if w.CPU == 0 {
		return "-" // not told yet
	}
	return cores(w.FreeCPU) + " of " + cores(w.CPU)
}
