package measure

import "testing"

func TestMachine(t *testing.T) {
	for name, row := range map[string]struct{ cpuinfo, want string }{
		"x86":           {"processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel\t\t: 18\n", "2 cores (AMD EPYC, model 17)"},
		"says no model": {"processor\t: 0\nBogoMIPS\t: 48.00\n", "2 cores"},
		"can't be read": {"", "2 cores"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := machine(2, row.cpuinfo); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
