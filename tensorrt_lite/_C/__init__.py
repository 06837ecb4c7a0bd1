FAMILIES = ['arithmetic', 'copy', 'creation', 'reduction', 'view']
DEBUG = False
COMPILER = 'gcc (Debian 12.2.0-14+deb12u1) 12.2.0'
