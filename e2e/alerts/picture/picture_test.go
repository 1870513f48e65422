package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const dashboard = "../../../charts/jobferry/files/dashboard.json"

// scrapes are those of two managers, once a second for half a minute.
func scrapes() string {
	var text strings.Builder
	for second := range 30 {
		for i, manager := range []string{"manager-1", "manager-2"} {
			fmt.Fprintf(&text, "# SCRAPE %d %s\n", 1_800_000_000_000+second*1000, manager)
			fmt.Fprintf(&text, "# TYPE jobferry_usage_resource_seconds_total counter\n")
			fmt.Fprintf(&text, "jobferry_usage_resource_seconds_total{namespace=\"a<b\",worker=\"west\",resource=\"cpu\"} %d\n", second*(i+1))
		}
	}
	return text.String()
}

// A panel is drawn if there are samples for it. Others are named.
func TestDraw(t *testing.T) {
	panels, err := readPanels(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	picture, empty, err := draw(t.Context(), panels, strings.NewReader(scrapes()))
	if err != nil {
		t.Fatal(err)
	}
	asks, drawn := 0, strings.Count(picture, "<polyline")
	for _, p := range panels {
		if len(p.Targets) > 0 && strings.Contains(p.Targets[0].Expr, "jobferry_usage_resource_seconds_total") {
			asks++
		}
		if !strings.Contains(picture, strings.NewReplacer("&", "&amp;", "'", "&#39;").Replace(p.Title)) {
			t.Errorf("panel %s isn't there", p.Title)
		}
	}
	if asks == 0 || drawn == 0 || drawn > 2*asks || len(empty) < len(panels)/2 || strings.Contains(picture, "a<b") {
		t.Errorf("%d panels ask for usage, %d lines are drawn, %d of %d panels are empty", asks, drawn, len(empty), len(panels))
	}
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("it's no XML: %v", err)
		}
	}
}

func TestNoSamples(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples")
	for _, text := range []string{"", "# SCRAPE now m\n", "# SCRAPE 1 m\nx{ 1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), dashboard, path, path+".svg"); err == nil {
			t.Errorf("%q is drawn", text)
		}
	}
}
