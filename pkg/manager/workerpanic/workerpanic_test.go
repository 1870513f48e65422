package workerpanic

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
)

func TestContain(t *testing.T) {
	var nothing *int
	if !Contain("fine", func() {}) || Contain("w", func() { *nothing = 1 }) || Contain("w", func() { panic("made up") }) {
		t.Error("a panic isn't told from none")
	}
	if n := count(t, "w"); n != 2 || len(logged.at) != 1 {
		t.Errorf("%v are counted, %d workers logged", n, len(logged.at))
	}
	if Forget("w"); len(logged.at) != 0 || count(t, "w") != 0 {
		t.Error("it isn't forgotten")
	}
}

func count(t *testing.T, worker string) float64 {
	t.Helper()
	var m dto.Metric
	if err := total.WithLabelValues(worker).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}
