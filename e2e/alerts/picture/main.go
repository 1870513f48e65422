package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	dashboard := flag.String("dashboard", "charts/jobferry/files/dashboard.json", "Grafana dashboard to draw")
	samples := flag.String("samples", "bin/samples.txt", "metrics of a run, as the flag -samples of bin/chaos records them")
	out := flag.String("out", "bin/grafana.svg", "file to draw to")
	flag.Parse()
	if err := run(context.Background(), *dashboard, *samples, *out); err != nil {
		fmt.Fprintf(os.Stderr, "picture: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dashboard, samples, out string) (err error) {
	panels, err := readPanels(dashboard)
	if err != nil {
		return err
	}
	file, err := os.Open(samples)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	picture, empty, err := draw(ctx, panels, file)
	if err != nil {
		return err
	}
	for _, title := range empty {
		fmt.Fprintf(os.Stderr, "panel %s is empty\n", title)
	}
	return os.WriteFile(out, []byte(picture), 0o600)
}

// panel is what of a dashboard's panel is drawn.
type panel struct {
	Title   string
	Type    string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }
}

func readPanels(path string) ([]panel, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return dashboard.Panels, nil
}

// draw draws the panels, and names those that are empty.
func draw(ctx context.Context, panels []panel, samples io.Reader) (picture string, empty []string, err error) {
	r, err := load(ctx, samples)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, r.storage.Close()) }()
	s := sheet{from: r.from, to: r.to}
	for i := range panels {
		lines, err := r.lines(ctx, &panels[i])
		if err != nil {
			return "", nil, fmt.Errorf("panel %s: %w", panels[i].Title, err)
		}
		if len(lines) == 0 && panels[i].Type != "row" {
			empty = append(empty, panels[i].Title)
		}
		s.draw(&panels[i], lines)
	}
	return s.svg(), empty, nil
}
