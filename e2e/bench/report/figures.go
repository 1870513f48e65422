package report

import (
	"fmt"
	"io"
	"time"
)

// Measured is what a run has measured, one figure after the other.
type Measured struct {
	Figures []Figure
	// Told is told each figure as soon as it's measured. Nil: nobody is.
	Told func(figure string) `json:"-"`
}

// Figure is one measured value, and what it has to be at most; 0 is no goal, see None.
type Figure struct {
	Name  string
	Value float64
	Unit  Unit
	Most  float64 `json:",omitempty"`
	// None: the value has to be 0.
	None bool `json:",omitempty"`
}

// Unit is how a figure is written.
type Unit string

// Units of figures.
const (
	Count    Unit = ""
	Ratio    Unit = "x"
	Seconds  Unit = "s"
	Bytes    Unit = "B"
	Kilobyte Unit = "KB"
	Megabyte Unit = "MB"
)

func (u Unit) show(v float64) string {
	switch u {
	case Kilobyte:
		return fmt.Sprintf("%.2f KB", v/1e3)
	case Megabyte:
		return megabytes(v)
	case Seconds:
		return fmt.Sprintf("%.2f s", v)
	case Ratio:
		return times(v)
	case Count, Bytes:
	}
	return fmt.Sprintf("%.4g %s", v, u)
}

// Add adds a figure with a goal; most 0: without.
func (m *Measured) Add(name string, value float64, unit Unit, most float64) {
	m.add(Figure{Name: name, Value: value, Unit: unit, Most: most})
}

func (m *Measured) add(f Figure) {
	m.Figures = append(m.Figures, f)
	if m.Told != nil {
		m.Told(f.Name + ": " + f.Unit.show(f.Value))
	}
}

// AddTime adds a time.
func (m *Measured) AddTime(name string, value, most time.Duration) {
	m.Add(name, value.Seconds(), Seconds, most.Seconds())
}

// AddNone adds a number that has to be 0.
func (m *Measured) AddNone(name string, value int) {
	m.add(Figure{Name: name, Value: float64(value), None: true})
}

// Missed reports whether there is a goal that the value misses.
func (f *Figure) Missed() bool { return (f.Most > 0 || f.None) && f.Value > f.Most }

// MissedGoals names the goals that a run misses. Those of time depend on the machine.
func (m *Measured) MissedGoals() (missed []string) {
	for _, f := range m.Figures {
		if f.Missed() {
			missed = append(missed, fmt.Sprintf("%s: %s, at most %s", f.Name, f.Unit.show(f.Value), f.Unit.show(f.Most)))
		}
	}
	return missed
}

// markdown writes all figures as a table with a title.
func (m *Measured) markdown(out io.Writer, title string, arguments ...any) error {
	p := &page{}
	p.line("### "+title+"\n", arguments...)
	p.table("", "measured", "at most", "")
	for _, f := range m.Figures {
		most, met := "", ""
		switch {
		case f.Missed():
			most, met = f.Unit.show(f.Most), "**missed**"
		case f.Most > 0 || f.None:
			most, met = f.Unit.show(f.Most), "met"
		}
		p.row(f.Name, f.Unit.show(f.Value), most, met)
	}
	_, err := io.WriteString(out, p.String())
	return err
}
