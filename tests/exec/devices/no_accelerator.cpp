// This library is no plug-in.
extern "C" int not_an_accelerator() { return 0; }
