package controllers

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Options choose what is measured.
type Options struct {
	// Scale is the size of the loads. Default 1, for the whole.
	Scale float64
	// Workers are the numbers of Jobs that are synced at a time, in the loads. Default 1,5.
	Workers string
	// Rounds is how often each contender runs, by turns. Default 1.
	Rounds int
	// Rows is part of the names of the loads that are measured. Default: all are.
	Rows string
	// Progress receives a line for what happens. Default: nobody.
	Progress func(format string, arguments ...any)
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{Scale: 1, Workers: "1,5", Rounds: 1, Progress: func(string, ...any) {}}
}

// workers are the numbers of Jobs that are synced at a time.
func (o *Options) workers() ([]int, error) {
	if o.Rounds < 1 {
		return nil, fmt.Errorf("-rounds: must be at least 1, not %d", o.Rounds)
	}
	var all []int
	for text := range strings.SplitSeq(o.Workers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("-workers: %w", err)
		}
		all = append(all, n)
	}
	return all, nil
}

// Result is what both contenders took, the built-in one first.
type Result struct {
	Loads []load
	// Resident is nil if memory was not measured.
	Resident *[2]resident
	held     *population
}

// load is what the rows took with so many Jobs synced at a time.
type load struct {
	Workers int
	Runs    [2][]run
	rows    []row
}

// Run measures both contenders.
func Run(ctx context.Context, o Options) (*Result, error) {
	workers, err := o.workers()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "jobferry-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	result := &Result{held: populationOf(o.Scale, o.Rows)}
	if all := rows(o.Scale, o.Rows); len(all) > 0 {
		for _, n := range workers {
			l := load{Workers: n, rows: all}
			if err := l.measure(ctx, dir, o); err != nil {
				return nil, err
			}
			result.Loads = append(result.Loads, l)
		}
	}
	if result.held == nil {
		return result, nil
	}
	result.Resident, err = measureMemory(ctx, dir, result.held, o.Progress)
	return result, err
}

// measure has the contenders run by turns.
func (l *load) measure(ctx context.Context, dir string, o Options) error {
	for range o.Rounds {
		for i, c := range contenders {
			r, err := c.run(ctx, dir, l.Workers, l.rows, o.Progress)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			l.Runs[i] = append(l.Runs[i], r)
		}
	}
	return nil
}

// measureMemory measures both contenders at the same time.
func measureMemory(ctx context.Context, dir string, held *population, progress func(string, ...any)) (*[2]resident, error) {
	var both [2]resident
	err := inParallel(len(contenders), func(i int) (err error) {
		if both[i], err = contenders[i].resident(ctx, dir, held, progress); err != nil {
			return fmt.Errorf("%s: %w", contenders[i].name, err)
		}
		return nil
	})
	return &both, err
}
