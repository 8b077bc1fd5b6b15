/* What Python's public headers ask of its configuration, for extensions that are cross-compiled (tools/python_headers.py).
   A Python's own pyconfig.h describes the system that it was made on; the rest of its headers is the same everywhere. Sizes come from the
   compiler's own macros, so that this one file serves all 64-bit systems. Python's headers also ask about features that only Python's own
   sources use; those are left out.
   The names and their meaning: the headers themselves (pyport.h, pymath.h, pythread.h, longobject.h) of CPython 3.10 to 3.14. */
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H

#define SIZEOF_SHORT __SIZEOF_SHORT__
#define SIZEOF_INT __SIZEOF_INT__
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
#define SIZEOF_FLOAT __SIZEOF_FLOAT__
#define SIZEOF_DOUBLE __SIZEOF_DOUBLE__
#define SIZEOF_LONG_DOUBLE __SIZEOF_LONG_DOUBLE__
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_UINTPTR_T __SIZEOF_POINTER__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define SIZEOF_TIME_T 8
#define SIZEOF_PID_T 4 /* on Windows too, where process numbers are Python's own `int` */
#define SIZEOF__BOOL 1

#define DOUBLE_IS_LITTLE_ENDIAN_IEEE754 1
#define HAVE_LONG_LONG 1
#define HAVE_SSIZE_T 1
#define HAVE_STDDEF_H 1
#define HAVE_ERRNO_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_WCHAR_H 1
#define HAVE_DYNAMIC_LOADING 1
#define WITH_DOC_STRINGS 1
#define WITH_PYMALLOC 1
#define WITH_THREAD 1 /* for extensions that still ask */

/* Python 3.10's pymath.h declares those that a system is said to lack. */
#define HAVE_COPYSIGN 1
#define HAVE_HYPOT 1
#define HAVE_ROUND 1
#define HAVE_FINITE 1
#define HAVE_DECL_ISFINITE 1
#define HAVE_DECL_ISINF 1
#define HAVE_DECL_ISNAN 1

#if defined(_WIN32)
#define MS_WINDOWS 1
#define MS_WIN32 1
#define MS_WIN64 1
#define NT_THREADS 1
#define HAVE_USABLE_WCHAR_T 1
/* Names of Python are imported from its DLL. */
#define HAVE_DECLSPEC_DLL 1
#define Py_ENABLE_SHARED 1
#else
#define SIZEOF_PTHREAD_T 8
#define HAVE_PTHREAD_H 1
#define HAVE_CLOCK_GETTIME 1
#define HAVE_FORK 1
#define HAVE_LANGINFO_H 1
#define HAVE_SYS_SELECT_H 1
#define HAVE_SYS_TIME_H 1
#endif

#endif
