package fleet

// managerFlags are the managers' flags about losing workers.
func (f *Fleet) managerFlags() []string { return nil }
