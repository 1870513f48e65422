package manager

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsValidate(t *testing.T) {
	rows := map[string]struct {
		change func(*Options)
		want   string // part of the error; empty: valid
	}{
		"the defaults are valid":   {func(*Options) {}, ""},
		"no namespace":             {func(o *Options) { o.Namespace = "" }, "namespace"},
		"origin that is no label":  {func(o *Options) { o.Origin = "not a label!" }, "origin"},
		"origin of many names":     {func(o *Options) { o.Origin = "a.b" }, "origin"},
		"origin in capitals":       {func(o *Options) { o.Origin = "Hub" }, "origin"},
		"no concurrency":           {func(o *Options) { o.Concurrency = 0 }, "concurrency"},
		"a worker may hold all":    {func(o *Options) { o.WorkerConcurrency = o.Concurrency }, ""},
		"a worker may hold more":   {func(o *Options) { o.WorkerConcurrency = o.Concurrency + 1 }, "worker concurrency"},
		"a negative delay":         {func(o *Options) { o.Timing.ProgressFloor = -time.Second }, "progress floor"},
		"no delay between writes":  {func(o *Options) { o.Timing.ProgressFloor = 0 }, ""},
		"a negative pass-over":     {func(o *Options) { o.PassOver = -1 }, "pass-over"},
		"a name for the hub":       {func(o *Options) { o.Origin = "hub-eu" }, ""},
		"never looked at again":    {func(o *Options) { o.Timing.Recheck = 0 }, "recheck"},
		"moved before it's told":   {func(o *Options) { o.Timing.StuckTimeout = time.Second }, "stuck timeout"},
		"a negative time-out":      {func(o *Options) { o.Connection.DialTimeout = -time.Second }, "worker dial timeout"},
		"a key that is none":       {func(o *Options) { o.HubKeys = []string{"no key!"} }, "stay on the hub"},
		"an annotation that isn't": {func(o *Options) { o.CarryAccountAnnotations = []string{"no key!"} }, "ServiceAccounts"},
		"a hub by its own UID (0)": {func(o *Options) { o.Origin = "" }, ""},
		"Pods, but no address":     {func(o *Options) { o.Pods.Enabled = true }, "pods address"},
		"Pods, at a name":          {func(o *Options) { o.Pods.Enabled, o.Pods.Address = true, "localhost" }, "pods address"},
		"Pods, at any address":     {func(o *Options) { o.Pods.Enabled, o.Pods.Address = true, "0.0.0.0" }, "pods address"},
		"Pods, at no port":         {func(o *Options) { o.Pods = PodsOptions{Enabled: true, Address: "10.0.0.1"} }, "pods port"},
		"Pods, at a port too high": {func(o *Options) { o.Pods = PodsOptions{Enabled: true, Address: "10.0.0.1", Port: 1 << 16} }, "pods port"},
		"Pods":                     {func(o *Options) { o.Pods.Enabled, o.Pods.Address = true, "fd00::1" }, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			row.change(&options)
			err := options.Validate()
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}
