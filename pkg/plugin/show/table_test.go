package show

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// output counts what is written.
type output struct{ bytes, writes int }

func (o *output) Write(p []byte) (int, error) {
	o.bytes += len(p)
	o.writes++
	return len(p), nil
}

// All rows are as wide as the widest: one long text mustn't cost as much in each of the others.
func TestLongCells(t *testing.T) {
	const rows, size = 100, 1 << 20
	long := strings.Repeat("x", size)
	pods, events := make([]corev1.Pod, rows), make([]corev1.Event, rows)
	cells := make([][]Cell, rows)
	for i := range rows {
		pods[i] = pod("a", "1", time.Minute, corev1.PodRunning)
		events[i] = event("a", "Normal", "Created", "made", time.Minute)
		cells[i] = row("a", "b")
	}
	pods[1].Status.Reason = long
	events[1].Type, events[1].Reason, events[1].InvolvedObject.Kind = long, long, long
	cells[1][0].Text = long
	for name, row := range map[string]struct {
		table Table
		most  int
	}{
		"Pods":   {Pods(pods, now, true), rows * 3 * text.MaxReason},
		"events": {Timeline(Entries("west", events), now), rows * 4 * text.MaxReason},
		"any":    {Table{Header: []string{"A", "B"}, Rows: cells}, rows * 2 * maxCell},
	} {
		var out output
		if err := row.table.Write(&out, nil); err != nil {
			t.Fatal(err)
		}
		if out.bytes > row.most || out.writes > out.bytes/1024 {
			t.Errorf("%s: %d bytes in %d writes, want %d bytes at most", name, out.bytes, out.writes, row.most)
		}
	}
	if got := render(t, Table{Header: []string{"A", "B"}, Rows: [][]Cell{row("a", long), row("b", "c")}}); len(got) < size || len(got) > size+100 {
		t.Errorf("%d bytes, want the whole text in the last column", len(got))
	}
}
