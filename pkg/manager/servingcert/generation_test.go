package servingcert

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"
)

func TestGenerationSurvivesTheSecret(t *testing.T) {
	g := born(t, 0, "b.example", "a.example")
	good, bad := parseSecret(map[string][]byte{g.entry: g.both, "tls.crt": []byte("somebody else's")})
	if len(good) != 1 || len(bad) != 0 {
		t.Fatalf("read %d, unreadable %v", len(good), bad)
	}
	if !bytes.Equal(good[0].cert, g.cert) || !good[0].created.Equal(start) || !good[0].expires().Equal(start.Add(90*time.Hour)) {
		t.Errorf("read back: created %s, expires %s", good[0].created, good[0].expires())
	}
	if !good[0].renewal().Equal(start.Add(60 * time.Hour)) {
		t.Errorf("renewal at %s", good[0].renewal())
	}
}

func TestParseSecretOrdersAndNamesTheUnreadable(t *testing.T) {
	older, newer := born(t, 0, "a"), born(t, 1, "a")
	broken := "serving-20260501T120000Z-0123456789ab.pem"
	noDate := "serving-20269901T120000Z-0123456789ab.pem"
	good, bad := parseSecret(map[string][]byte{newer.entry: newer.both, older.entry: older.both, broken: older.cert, noDate: older.both})
	if len(good) != 2 || good[0].entry != older.entry || good[1].entry != newer.entry {
		t.Errorf("read %v", good)
	}
	if len(bad) != 2 || bad[0] != broken || bad[1] != noDate {
		t.Errorf("unreadable %v", bad)
	}
}

// A client that trusts the bundle accepts the certificate for its names, during its life, and
// nothing that it signs.
func TestCertificateIsWhatClientsAccept(t *testing.T) {
	g := born(t, 0, "webhook.jobferry-system.svc")
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle([]*generation{born(t, 5, "x"), g})) {
		t.Fatal("the bundle isn't PEM")
	}
	rows := map[string]struct {
		name  string
		at    time.Duration
		valid bool
	}{
		"in its life":                {"webhook.jobferry-system.svc", time.Hour, true},
		"by a clock that is behind":  {"webhook.jobferry-system.svc", -50 * time.Minute, true},
		"after its life":             {"webhook.jobferry-system.svc", 91 * time.Hour, false},
		"under another Service's":    {"other.jobferry-system.svc", time.Hour, false},
		"under the Service's of ns2": {"webhook.ns2.svc", time.Hour, false},
	}
	for name, row := range rows {
		_, err := g.pair.Leaf.Verify(x509.VerifyOptions{DNSName: row.name, Roots: pool, CurrentTime: start.Add(row.at)})
		if (err == nil) != row.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if g.pair.Leaf.IsCA {
		t.Error("the certificate may sign others")
	}
}
