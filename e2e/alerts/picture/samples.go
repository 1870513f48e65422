package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/teststorage"
)

// recorded is what a Prometheus would have of a run.
type recorded struct {
	engine   *promql.Engine
	storage  *teststorage.TestStorage
	from, to time.Time
}

// load reads scrapes. Each has a heading: when, in milliseconds since 1970, and of which Pod.
func load(ctx context.Context, samples io.Reader) (*recorded, error) {
	storage, err := teststorage.NewWithError()
	if err != nil {
		return nil, err
	}
	r := &recorded{storage: storage,
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 5e7, Timeout: time.Minute, LookbackDelta: 5 * time.Second})}
	if err := r.read(ctx, samples); err != nil {
		return nil, errors.Join(err, storage.Close())
	}
	return r, nil
}

func (r *recorded) read(ctx context.Context, samples io.Reader) error {
	var text bytes.Buffer
	var at int64
	var pod string
	lines := bufio.NewScanner(samples)
	for lines.Scan() {
		heading, is := strings.CutPrefix(lines.Text(), "# SCRAPE ")
		if !is {
			text.WriteString(lines.Text() + "\n")
			continue
		}
		if err := r.add(ctx, at, pod, &text); err != nil {
			return err
		}
		if _, err := fmt.Sscan(heading, &at, &pod); err != nil {
			return fmt.Errorf("%q: %w", heading, err)
		}
	}
	if err := errors.Join(lines.Err(), r.add(ctx, at, pod, &text)); err != nil {
		return err
	}
	if r.from.IsZero() {
		return errors.New("there are no samples")
	}
	return nil
}

// add adds one scrape.
func (r *recorded) add(ctx context.Context, at int64, pod string, text *bytes.Buffer) error {
	if text.Len() == 0 {
		return nil
	}
	reader := expfmt.NewTextParser(model.UTF8Validation)
	families, err := reader.TextToMetricFamilies(text)
	text.Reset()
	if err != nil {
		return err
	}
	if r.to = time.UnixMilli(at); r.from.IsZero() {
		r.from = r.to
	}
	options := &expfmt.DecodeOptions{Timestamp: model.Time(at)}
	vector, err := expfmt.ExtractSamples(options, slices.Collect(maps.Values(families))...)
	if err != nil {
		return err
	}
	to := r.storage.Appender(ctx)
	for _, s := range vector {
		name := map[string]string{"pod": pod, "instance": pod}
		for key, value := range s.Metric {
			name[string(key)] = string(value)
		}
		if _, err := to.Append(0, labels.FromMap(name), at, float64(s.Value)); err != nil {
			return errors.Join(err, to.Rollback())
		}
	}
	return to.Commit()
}

// line is one of a panel's.
type line struct {
	name   string
	floats []promql.FPoint
}

// points is how many there are of each line.
const points = 240

var inLegend = regexp.MustCompile("{{([a-z_]+)}}")

// lines are the answers to a panel's queries.
func (r *recorded) lines(ctx context.Context, p *panel) (all []line, err error) {
	variables := strings.NewReplacer("$__rate_interval", "15s", "$worker", ".*")
	for _, target := range p.Targets {
		q, err := r.engine.NewRangeQuery(ctx, r.storage, nil, variables.Replace(target.Expr), r.from, r.to, max(r.to.Sub(r.from)/points, time.Second))
		if err != nil {
			return nil, err
		}
		matrix, err := q.Exec(ctx).Matrix()
		if err != nil {
			return nil, err
		}
		for _, s := range matrix {
			name := inLegend.ReplaceAllStringFunc(target.LegendFormat, func(label string) string { return s.Metric.Get(strings.Trim(label, "{}")) })
			all = append(all, line{cmp.Or(name, "(none)"), slices.Clone(s.Floats)})
		}
		q.Close()
	}
	return all, nil
}
