package bench

import "fmt"

// Common are the options of all runs of the manager.
type Common struct {
	// Workers is the number of worker clusters.
	Workers int
	// ManagerFlags are added to the manager's command line, and win.
	ManagerFlags []string
	// Progress receives a line for what happens. Default: nobody.
	Progress func(format string, arguments ...any)
}

func common(workers int) Common {
	return Common{Workers: workers, Progress: func(string, ...any) {}}
}

// problems are what can't be used of some options.
type problems []error

func (p *problems) refuse(is bool, format string, arguments ...any) {
	if is {
		*p = append(*p, fmt.Errorf(format, arguments...))
	}
}

func (p *problems) atLeast(name string, value, least int) {
	p.refuse(value < least, "%s: must be at least %d, not %d", name, least, value)
}

func divideUp(a, b int) int { return (a + b - 1) / b }
