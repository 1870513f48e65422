package bench

import "testing"

func TestOptions(t *testing.T) {
	if o := DefaultFloodOptions(); o.Validate() != nil {
		t.Errorf("the defaults can't be used: %v", o.Validate())
	}
	for name, spoil := range map[string]func(*FloodOptions){
		"no Jobs":       func(o *FloodOptions) { o.Jobs = 0 },
		"no workers":    func(o *FloodOptions) { o.Workers = 0 },
		"no submitters": func(o *FloodOptions) { o.Submitters = 0 },
		"singles":       func(o *FloodOptions) { o.Singles = -1 },
		"resting":       func(o *FloodOptions) { o.Resting = -1 },
		"quiet":         func(o *FloodOptions) { o.Quiet = -1 },
	} {
		o := DefaultFloodOptions()
		spoil(&o)
		if o.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
