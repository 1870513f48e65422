package admission

import (
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	rows := map[string]struct {
		edit func(*Options)
		want string // part of the error; empty: none
	}{
		"defaults":              {func(*Options) {}, ""},
		"one address":           {func(o *Options) { o.BindAddress = "127.0.0.1:8443" }, ""},
		"no port":               {func(o *Options) { o.BindAddress = "localhost" }, `address "localhost": must be host:port`},
		"a port beyond":         {func(o *Options) { o.BindAddress = ":70000" }, `address ":70000"`},
		"no Service":            {func(o *Options) { o.Service = "" }, `service ""`},
		"too short a lifetime":  {func(o *Options) { o.CertLifetime = time.Second }, "lifetime: must be at least 6s"},
		"it doesn't count then": {func(o *Options) { o.CertLifetime, o.CertDir = time.Second, "/certs" }, ""},
		"nothing counts then":   {func(o *Options) { o.BindAddress, o.Enabled = "", false }, ""},
	}
	for name, row := range rows {
		o := DefaultOptions()
		o.Enabled, o.Namespace = true, "jobferry-system"
		row.edit(&o)
		err := o.Validate()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
}
