package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// profileSeconds is how long CPU is profiled from a phase's begin, about the time that 500 Jobs
// take without Jobferry.
const profileSeconds = 8

// profile profiles the CPU that the API servers and the manager, if it runs, use from now on. It
// does nothing if no profiles are wanted. The channel gives its end.
func (r *run) profile(ctx context.Context, phase string) <-chan error {
	done := make(chan error, 1)
	if r.options.Profiles == "" {
		done <- nil
		return done
	}
	var all errgroup.Group
	save := func(of string, from rest.Interface) {
		all.Go(func() error { return r.saveProfile(ctx, phase+"-"+of, from, "profile", profileSeconds) })
	}
	for _, s := range r.fleet.all() {
		save(s.Name(), s.client.CoreV1().RESTClient())
	}
	if r.manager != nil {
		manager, err := r.manager.profilesOf()
		if err != nil {
			done <- err
			return done
		}
		save("manager", manager)
	}
	go func() { done <- all.Wait() }()
	return done
}

// profileHeap notes what the manager's memory is held by.
func (r *run) profileHeap(ctx context.Context) error {
	if r.options.Profiles == "" {
		return nil
	}
	manager, err := r.manager.profilesOf()
	if err != nil {
		return err
	}
	return r.saveProfile(ctx, "heap-manager", manager, "heap", 0)
}

// saveProfile writes one profile to a file; seconds are for those that are taken over a time.
func (r *run) saveProfile(ctx context.Context, file string, from rest.Interface, profile string, seconds int) error {
	return saveProfile(ctx, filepath.Join(r.options.Profiles, file), from, profile, seconds)
}

func saveProfile(ctx context.Context, file string, from rest.Interface, profile string, seconds int) error {
	request := from.Get().AbsPath("/debug/pprof/" + profile)
	if seconds > 0 {
		request = request.Param("seconds", fmt.Sprint(seconds))
	}
	content, err := request.DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("profile %s: %w", file, err)
	}
	return os.WriteFile(file+".pprof", content, 0o644)
}

// profilesOf is a client of the address where a manager serves its profiles.
func (m *manager) profilesOf() (rest.Interface, error) {
	return rest.UnversionedRESTClientFor(&rest.Config{
		Host:          "http://" + m.profiles,
		ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
}

// reserveProfiles finds an address for a manager's profiles, which is free until the clusters are
// stopped.
func (f *fleet) reserveProfiles() (string, error) {
	port, err := f.hub.ReservePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
