package servingcert

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	good := func(edit func(*Options)) Options {
		o := Options{Namespace: "jobferry-system", SecretName: "cert", DNSNames: []string{"a"}}
		edit(&o)
		return o
	}
	rows := map[string]struct {
		options Options
		want    string // part of the error; empty: none
	}{
		"defaults":         {good(func(*Options) {}), ""},
		"short, for tests": {good(func(o *Options) { o.Lifetime, o.Settle = 6*time.Second, time.Second }), ""},
		"no Secret":        {good(func(o *Options) { o.SecretName = "" }), `Secret's name ""`},
		"no namespace":     {good(func(o *Options) { o.Namespace = "Not A Namespace" }), `namespace "Not A Namespace"`},
		"no names":         {good(func(o *Options) { o.DNSNames = nil }), "DNS names: need at least one"},
		"too short":        {good(func(o *Options) { o.Lifetime = time.Second }), "lifetime: must be at least 6s"},
		"settles too late": {good(func(o *Options) { o.Lifetime, o.Settle = time.Hour, 11*time.Minute }), "a sixth of the lifetime (10m0s)"},
		"two of one kind":  {good(func(o *Options) { o.Targets = []Target{APIService("a"), APIService("b")} }), "more than one APIService"},
		"one of several kinds": {good(func(o *Options) {
			o.Targets = []Target{APIService("a"), MutatingWebhooks("a")}
		}), ""},
	}
	for name, row := range rows {
		_, err := New(row.options)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	o, err := Options{Namespace: "ns", SecretName: "s", DNSNames: []string{"a"}}.complete()
	if err != nil || o.Lifetime != 90*24*time.Hour || o.Settle != time.Minute {
		t.Errorf("%+v, error %v", o, err)
	}
	o, err = Options{Namespace: "ns", SecretName: "s", DNSNames: []string{"a"}, Lifetime: time.Minute}.complete()
	if err != nil || o.Settle != 10*time.Second {
		t.Errorf("settles in %s, error %v", o.Settle, err)
	}
}

func TestServiceNames(t *testing.T) {
	if got := ServiceNames("webhook", "ns"); !slices.Contains(got, "webhook.ns.svc") {
		t.Errorf("the API server's own name for a Service is missing: %v", got)
	}
}
