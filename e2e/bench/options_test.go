package bench

import "testing"

func TestOptions(t *testing.T) {
	if o := DefaultOptions(); o.Validate() != nil {
		t.Errorf("the defaults can't be used: %v", o.Validate())
	}
	for name, spoil := range map[string]func(*Options){
		"no Jobs":       func(o *Options) { o.Jobs = 0 },
		"no workers":    func(o *Options) { o.Workers = 0 },
		"no submitters": func(o *Options) { o.Submitters = 0 },
		"singles":       func(o *Options) { o.Singles = -1 },
		"resting":       func(o *Options) { o.Resting = -1 },
		"quiet":         func(o *Options) { o.Quiet = -1 },
	} {
		o := DefaultOptions()
		spoil(&o)
		if o.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
