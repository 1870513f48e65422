package table

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Markdown writes the page.
func (t *Table) Markdown(out io.Writer) error {
	p := &page{table: t}
	p.head()
	for _, hub := range t.Hubs {
		p.hub(hub)
	}
	p.reasons()
	_, err := io.WriteString(out, p.text.String())
	return err
}

type page struct {
	table *Table
	text  strings.Builder
	notes []string
}

func (p *page) line(format string, arguments ...any) { fmt.Fprintf(&p.text, format+"\n", arguments...) }

func (p *page) head() {
	t := p.table
	p.line("# Compatibility\n")
	p.line("With this page you see which releases of Kubernetes work together, and with which features.\n")
	p.line("The hub and its workers may run different releases of Kubernetes. For each pair of a hub and its")
	p.line("workers, and each feature, the tables say whether the feature's tests pass on real control planes of")
	p.line("these releases. A test program writes this page:\n")
	p.line("| | |")
	p.line("|---|---|")
	p.line("| command | `%s` |", t.Command())
	p.line("| run | %s |", t.period())
	p.line("| Jobferry | %s |", t.tested())
	var versions []string
	for _, release := range t.releases() {
		versions = append(versions, t.Patches[release])
	}
	p.line("| Kubernetes | %s |", strings.Join(versions, ", "))
	p.line("| result | %d yes, %d no, %d untried |", t.count(Yes), t.count(No), t.count(Untried))
}

// never stands for the time and the version of tests that nobody has run.
const never = "never"

// period is when the tests ran.
func (t *Table) period() string {
	const day, minute = "2006-01-02", "15:04"
	from, to := t.From.UTC(), t.To.UTC()
	switch {
	case from.IsZero():
		return never
	case from.Format(day) == to.Format(day):
		return fmt.Sprintf("%s, %s to %s UTC", from.Format(day), from.Format(minute), to.Format(minute))
	default:
		return fmt.Sprintf("%s to %s", from.Format(day), to.Format(day))
	}
}

func (t *Table) tested() string {
	if len(t.Tested) == 0 {
		return never
	}
	return strings.Join(t.Tested, ", ")
}

// releases are all that the table is about, oldest first.
func (t *Table) releases() []string {
	all := slices.Concat(t.Hubs, t.Workers)
	slices.Sort(all)
	return slices.Compact(all)
}

func (p *page) hub(hub string) {
	p.line("\n## A hub of %s\n", hub)
	p.line("| feature | worker %s |", strings.Join(p.table.Workers, " | worker "))
	p.line("|---|%s", strings.Repeat("---|", len(p.table.Workers)))
	for _, row := range p.table.Rows {
		var cells []string
		for _, worker := range p.table.Workers {
			cells = append(cells, p.cell(row.Cell(Pair{hub, worker})))
		}
		p.line("| %s | %s |", row.Feature, strings.Join(cells, " | "))
	}
}

// cell shows an answer; one that has a reason refers to it.
func (p *page) cell(c Cell) string {
	if c.Answer == Yes {
		return "yes"
	}
	text := "–"
	if c.Answer == No {
		text = "**no**"
	}
	i := slices.Index(p.notes, c.Reason)
	if i < 0 {
		i = len(p.notes)
		p.notes = append(p.notes, c.Reason)
	}
	return fmt.Sprintf("%s (%d)", text, i+1)
}

func (p *page) reasons() {
	if len(p.notes) == 0 {
		return
	}
	p.line("\n## Reasons\n")
	for i, note := range p.notes {
		p.line("%d. %s", i+1, oneLine(note))
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
